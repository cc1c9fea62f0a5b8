/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes that programs give to ranges of memory: hsa_amd_svm_...().
 */
#pragma once

/* With the lock of the records: forgets it all. */
void svm_forget(void);
