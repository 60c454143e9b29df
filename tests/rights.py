"""Drop root's privileges, so that permissions apply even when tests run as root."""

from __future__ import annotations

import ctypes
import os

PR_CAPBSET_DROP = 24
CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1, 2
CAPABILITY_VERSION = 0x20080522  # two words per set


def obey_permissions():
    """In a child: drop root's right to ignore file modes, now and after exec."""
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
        _check(libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0))
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable, and their upper halves
    _check(libc.capget(header, sets))
    for number in range(3):
        sets[number] &= ~(1 << CAP_DAC_OVERRIDE | 1 << CAP_DAC_READ_SEARCH)
    _check(libc.capset(header, sets))


def _check(failed):
    if failed:
        raise OSError(ctypes.get_errno(), "cannot give up root's rights")
