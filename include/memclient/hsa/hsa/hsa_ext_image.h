/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images: there are none, and no functions for them. These attributes are for hsa_agent_get_info(), as
 * hsa_agent_info_t. hsa_ext_amd.h includes this file.
 */
#ifndef HSA_EXT_IMAGE_H
#define HSA_EXT_IMAGE_H

#include "hsa.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In brackets: the type of the value, which is 0 for a CPU agent. [-]: CPU agents do not have it, INVALID_ARGUMENT. */
enum {
    HSA_EXT_AGENT_INFO_IMAGE_1D_MAX_ELEMENTS = 0x3000,           /* [uint32_t] */
    HSA_EXT_AGENT_INFO_IMAGE_1DA_MAX_ELEMENTS = 0x3001,          /* [uint32_t] */
    HSA_EXT_AGENT_INFO_IMAGE_1DB_MAX_ELEMENTS = 0x3002,          /* [uint32_t] */
    HSA_EXT_AGENT_INFO_IMAGE_2D_MAX_ELEMENTS = 0x3003,           /* [uint32_t[2]] */
    HSA_EXT_AGENT_INFO_IMAGE_2DA_MAX_ELEMENTS = 0x3004,          /* [uint32_t[2]] */
    HSA_EXT_AGENT_INFO_IMAGE_2DDEPTH_MAX_ELEMENTS = 0x3005,      /* [uint32_t[2]] */
    HSA_EXT_AGENT_INFO_IMAGE_2DADEPTH_MAX_ELEMENTS = 0x3006,     /* [uint32_t[2]] */
    HSA_EXT_AGENT_INFO_IMAGE_3D_MAX_ELEMENTS = 0x3007,           /* [uint32_t[3]] */
    HSA_EXT_AGENT_INFO_IMAGE_ARRAY_MAX_LAYERS = 0x3008,          /* [uint32_t] */
    HSA_EXT_AGENT_INFO_MAX_IMAGE_RD_HANDLES = 0x3009,            /* [uint32_t] */
    HSA_EXT_AGENT_INFO_MAX_IMAGE_RORW_HANDLES = 0x300A,          /* [uint32_t] */
    HSA_EXT_AGENT_INFO_MAX_SAMPLER_HANDLERS = 0x300B,            /* [uint32_t] */
    HSA_EXT_AGENT_INFO_IMAGE_LINEAR_ROW_PITCH_ALIGNMENT = 0x300C /* [-] */
};

#ifdef __cplusplus
}
#endif

#endif
