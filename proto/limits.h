/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers of the protocol, and what a peer may cost before anything is known about it. Plain C without includes:
 * every module may use it. PROTOCOL.md quotes these, and a test compares the two.
 *
 * Limits that an operator may change are in memoryd.conf, [limits].
 */
#pragma once

/* Version 1.4. The major number is in every header, the minor one is agreed on by HELLO. */
#define MEMORYD_VERSION   1
#define MEMORYD_MINOR_MIN 0
#define MEMORYD_MINOR_MAX 4

/* ---- a packet ---------------------------------------------------------------------------------------------------- */
/* Header and message together. Fits into a socket buffer of the default size, in one piece. */
#define MEMORYD_FRAME_MAX   65536
#define MEMORYD_HEADER_SIZE 32
/* Of a request that says `answered`. */
#define MEMORYD_HEADER_LONG 40
/* A later version may have a longer header; bytes after the known part are skipped. */
#define MEMORYD_HEADER_MAX  64
#define MEMORYD_PAYLOAD_MAX (MEMORYD_FRAME_MAX - MEMORYD_HEADER_SIZE)
/* Descriptors beside it; the kernel would take 253. */
#define MEMORYD_FDS_MAX 64

/* ---- a message --------------------------------------------------------------------------------------------------- */
/* Items of a batch: each may have a descriptor, so as many as fit into one packet. */
#define MEMORYD_BATCH_MAX 64
/* Rows of a listing in one packet, even if more would fit: they take several times their size when decoded. */
#define MEMORYD_ROWS_MAX 128
/* Rows that may be asked for in SELECT_BUFFERS: as many as a listing gives at a stretch. */
#define MEMORYD_SELECT_MAX 16
/* Messages inside a message: the rows of a listing, and what a row might hold. */
#define MEMORYD_NESTING_MAX 2
/* Fields of a later version that are skipped, per message and per row of it. */
#define MEMORYD_UNKNOWN_FIELDS_MAX 16
#define MEMORYD_NODES_MAX          64
#define MEMORYD_NAME_MAX           255
/* Names of one buffer, whoever bound them. */
#define MEMORYD_BUFFER_NAMES_MAX    64
#define MEMORYD_SENTENCE_MAX        255
#define MEMORYD_PROGRAM_MAX         63
#define MEMORYD_POOL_NAME_MAX       63
#define MEMORYD_WORD_MAX            31 /* of a method, a status or the key of a limit */
#define MEMORYD_LIMIT_KEY_MAX       63
#define MEMORYD_POOL_ALLOW_MAX      198 /* as long as a line of the configuration */
#define MEMORYD_HOLDERS_MAX         16
#define MEMORYD_CHECK_SENTENCES_MAX 16
#define MEMORYD_SECRET_SIZE         16
#define MEMORYD_TOKEN_SIZE          32
#define MEMORYD_TOKEN_TEXT          (2 * MEMORYD_TOKEN_SIZE)

/* ---- a session --------------------------------------------------------------------------------------------------- */
/* Recorded requests that the client has not acknowledged: under way, or done and their replies kept for a repeat. */
#define MEMORYD_UNACKNOWLEDGED_MAX 64

/* What is shown at a door: a request, and its answer up to the sentence. */
#define MEMORYD_DOOR_REQUEST 8
#define MEMORYD_DOOR_ANSWER  16

/* Ranges that other brokers gave a client, in HELLO. */
#define MEMORYD_OCCUPIED_MAX 64

/* ---- decoding ---------------------------------------------------------------------------------------------------- */
/*
 * The memory that one decoded message may take, in bytes and in pieces. No message of the schema takes more, not even
 * the densest listing that fits into a packet (test-envelope tries). A packet that needs more is an attack: without a
 * bound, 64 KiB of input take 3 MB in 32 000 pieces.
 */
#define MEMORYD_ARENA_BYTES  (6 * MEMORYD_FRAME_MAX)
#define MEMORYD_ARENA_PIECES 4096
