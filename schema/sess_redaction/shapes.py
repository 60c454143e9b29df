"""Secrets that are known by their shape: what the services publish about their keys and tokens.

The expressions mean the same to RE2 and to `re`, so they have no lookaround. Where only the least
length is given, a longer one is masked whole.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Shape(NamedTuple):
    kind: str
    expression: str
    sample: str  # an invented secret of this shape
    with_digit: bool = False  # random letters nearly always include a digit; words do not
    sign: str = ""  # where it begins with anything: what is looked for, which may be inside it

    @property
    def screened(self) -> str:
        """What RE2 looks for: enough to be rare, too short to be slow among a hundred others.

        It may be broken by a narrow terminal.
        """
        return self.sign or _LONG_RUN.sub(r"(?:\1{6}|\1*\\r?\\n)", self.expression, count=1)


_LONG_RUN = re.compile(r"(\[[^\]]*\]|\\[wd])\{(?:\d\d+,?\d*|8,)\}.*", re.DOTALL)
_KEY, _TOKEN = "API key", "token"
_HEX, _MIXED, _UPPER = "0a1b2c3d4e5f6978", "aB39xQ7kLm2Zp8Rt", "QWER7TYU2IOP3ASD"


def _of(alphabet: str, length: int) -> str:
    return (alphabet * (length // len(alphabet) + 1))[:length]


def _hex(kind: str, before: str, length: int) -> Shape:
    return Shape(kind, rf"{re.escape(before)}[0-9a-f]{{{length},}}\b", before + _of(_HEX, length))


def _mixed(kind: str, before: str, length: int, *, also: str = "") -> Shape:
    """Letters and digits, at least so many; `also` are other characters that may be among them."""
    expression = rf"{re.escape(before)}[A-Za-z0-9{also}]{{{length},}}"
    return Shape(kind, expression, before + _of(_MIXED, length))


SHAPES = (
    # AI services
    Shape(_KEY, r"sk-ant-[A-Za-z0-9]{2,12}-[\w-]{20,}", "sk-ant-api03-" + _of(_MIXED, 93)),
    Shape(_KEY, r"sk-or-(?:v\d-)?[A-Za-z0-9]{20,}", "sk-or-v1-" + _of(_HEX, 64)),
    Shape(_KEY, r"sk-(?:proj|svcacct|admin|None|lf)-[\w-]{20,}", "sk-proj-" + _of(_MIXED, 74)),
    Shape(_KEY, r"sk-[A-Za-z0-9]{20,}", "sk-" + _of(_MIXED, 48), with_digit=True),
    _mixed(_KEY, "AIza", 30, also="_-"),
    _mixed(_KEY, "gsk_", 32),
    _mixed(_KEY, "xai-", 40),
    _mixed(_KEY, "pplx-", 32),
    _mixed(_TOKEN, "hf_", 30),
    _mixed(_TOKEN, "r8_", 37),
    _mixed(_KEY, "fw_", 22),
    _mixed(_KEY, "tgp_v1_", 30, also="_-"),
    _mixed(_KEY, "nvapi-", 50, also="_-"),
    _mixed(_KEY, "csk-", 40),
    _mixed(_KEY, "lsv2_pt_", 32, also="_"),
    _mixed(_KEY, "lsv2_sk_", 32, also="_"),
    _mixed(_KEY, "tvly-", 25, also="-"),
    _mixed(_KEY, "pcsk_", 40, also="_"),
    _hex(_KEY, "sk_", 48),
    _mixed(_KEY, "jina_", 40, also="_-"),
    _hex(_KEY, "fc-", 32),
    _mixed(_KEY, "sk-helicone-", 24, also="-"),
    _mixed("secret", "esecret_", 24),
    _mixed(_TOKEN, "flp_", 36),
    Shape(_KEY, r"rpa_[A-Z0-9]{36,}", "rpa_" + _of(_UPPER, 46)),
    _hex(_KEY, "e2b_", 40),
    _mixed(_TOKEN, "apify_api_", 30),
    # Clouds
    Shape(_KEY, r"(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}\b", "AKIA" + _of(_UPPER, 16)),
    _mixed(_KEY, "ABSK", 100, also="+/="),
    Shape(_TOKEN, r"(?:IQoJb3JpZ2luX2Vj|FwoGZXIvYXdz)[A-Za-z0-9+/=]{80,}", "IQoJb3JpZ2luX2Vj" + _of(_MIXED, 200)),
    _mixed("secret", "GOCSPX-", 24, also="_-"),
    Shape(_TOKEN, r"ya29\.[\w.-]{30,}", "ya29." + _of(_MIXED, 60)),
    Shape(_TOKEN, r"1//0[\w-]{30,}", "1//0" + _of(_MIXED, 50)),
    Shape("secret", r"[\w~.-]{3}8Q~[\w~.-]{31,34}", "aB38Q~" + _of(_MIXED, 34), sign="8Q~"),
    Shape(_TOKEN, r"t1\.[A-Za-z0-9_-]{10,}={0,2}\.[\w-]{86}", f"t1.{_of(_MIXED, 30)}.{_of(_MIXED, 86)}"),
    _mixed(_KEY, "AQVN", 35, also="_-"),
    _mixed("password", "AVNS_", 15, also="_-"),
    Shape(_TOKEN, r"(?:cfut|cfat|cfk)_[A-Za-z0-9]{36,}", "cfut_" + _of(_MIXED, 48)),
    _hex(_TOKEN, "dop_v1_", 60),
    _hex(_TOKEN, "doo_v1_", 60),
    _hex(_TOKEN, "dor_v1_", 60),
    Shape(_TOKEN, r"dapi[0-9a-f]{32}(?:-\d)?\b", "dapi" + _of(_HEX, 32)),
    Shape(_KEY, r"LTAI[A-Za-z0-9]{12,24}\b", "LTAI" + _of(_MIXED, 20)),
    Shape(_KEY, r"AKID[A-Za-z0-9]{28,40}", "AKID" + _of(_MIXED, 32)),
    Shape(_TOKEN, r"FlyV1 fm\d[\w+/=.,]{30,}", "FlyV1 fm2_" + _of(_MIXED, 60)),
    _mixed(_TOKEN, "fo1_", 43, also="_-"),
    _mixed(_TOKEN, "nfp_", 36),
    _mixed(_KEY, "HRKU-", 36, also="_-"),
    _mixed(_TOKEN, "rnd_", 24),
    _mixed(_TOKEN, "vercel_blob_rw_", 30, also="_"),
    Shape(_TOKEN, r"vc[apkir]_[A-Za-z0-9]{24,}", "vcp_" + _of(_MIXED, 56)),
    Shape(_TOKEN, r"v1\.0-[0-9a-f]{24}-[0-9a-f]{100,}", f"v1.0-{_of(_HEX, 24)}-{_of(_HEX, 146)}"),
    Shape(_TOKEN, r"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,70}", f"{_of(_MIXED, 14)}.atlasv1.{_of(_MIXED, 67)}", sign=r"\.atlasv1\."),
    Shape(_TOKEN, r"hv[sbr]\.[\w-]{24,}", "hvs." + _of(_MIXED, 90), with_digit=True),
    Shape(_TOKEN, r"pul-[0-9a-f]{40}\b", "pul-" + _of(_HEX, 40)),
    Shape(_TOKEN, r"dp\.(?:ct|pt|st|sa|scim|audit)\.(?:[\w-]+\.)?[A-Za-z0-9]{40,}", "dp.pt." + _of(_MIXED, 43)),
    # Code hosting and packages
    Shape(_TOKEN, r"gh[pousr]_[A-Za-z0-9]{30,}", "ghp_" + _of(_MIXED, 36)),
    Shape(
        _TOKEN, r"github_pat_[A-Za-z0-9]{20,}_[A-Za-z0-9]{30,}",
        f"github_pat_{_of(_MIXED, 22)}_{_of(_MIXED, 59)}",
    ),
    Shape(
        _TOKEN, r"gl(?:pat|ptt|dt|rt|cbt|soat|ft|imt|agent|ffct|oas|wt)-[\w.-]{20,}",
        "glpat-" + _of(_MIXED, 20),
    ),
    _mixed(_TOKEN, "GR1348941", 20, also="_-"),
    Shape(_TOKEN, r"AT(?:ATT3x|BB|CTT3x|STT3x)[\w=-]{20,}", "ATATT3x" + _of(_MIXED, 180)),
    _mixed(_TOKEN, "dckr_pat_", 24, also="_-"),
    _mixed(_TOKEN, "dckr_oat_", 24, also="_-"),
    _mixed(_TOKEN, "npm_", 36),
    _mixed(_TOKEN, "pypi-AgE", 50, also="_-"),
    _hex(_TOKEN, "rubygems_", 40),
    Shape(_TOKEN, r"cio[A-Za-z0-9]{32}\b", "cio" + _of(_MIXED, 32), with_digit=True),
    Shape(_TOKEN, r"oy2[a-z0-9]{43}\b", "oy2" + _of("a2b3c4d5", 43)),
    Shape(_TOKEN, r"AKC[A-Za-z0-9]{10,}", "AKC" + _of(_MIXED, 70), with_digit=True),
    Shape(_TOKEN, r"cmVmdGtu[A-Za-z0-9]{50,}", "cmVmdGtu" + _of(_MIXED, 56)),
    Shape(_TOKEN, r"sq[a-z]_[0-9a-f]{40}\b", "squ_" + _of(_HEX, 40)),
    Shape(_TOKEN, r"CCIPAT_[A-Za-z0-9]{22}_[0-9a-f]{40}", f"CCIPAT_{_of(_MIXED, 22)}_{_of(_HEX, 40)}"),
    _mixed(_TOKEN, "sgp_", 40, also="_"),
    Shape(_TOKEN, r"CLOJARS_[0-9a-z]{60}", "CLOJARS_" + _of(_HEX, 60)),
    Shape(_KEY, r"API-[A-Z0-9]{26,}\b", "API-" + _of(_UPPER, 26), with_digit=True),
    Shape(_TOKEN, r"pnu_[a-z0-9]{36}\b", "pnu_" + _of(_HEX, 36)),
    Shape(_TOKEN, r"(?:pat|sat)\.[\w-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}", f"pat.{_of(_MIXED, 22)}.{_of(_HEX, 24)}.{_of(_MIXED, 20)}", sign=r"\.[0-9a-f]{24}\."),
    Shape(_TOKEN, r"snyk_[a-z]{3}\.[\w.-]{40,}", f"snyk_uat.0a1b2c3d.eyJ{_of(_MIXED, 60)}"),
    Shape(_TOKEN, r"bkua_[0-9a-f]{40}\b", "bkua_" + _of(_HEX, 40)),
    # Databases, analytics, observation
    _hex(_TOKEN, "sbp_", 40),
    Shape("secret", r"sb_secret_[\w-]{20,}", "sb_secret_" + _of(_MIXED, 31)),
    Shape(_TOKEN, r"pscale_(?:tkn|pw|oauth)_[\w=.-]{32,}", "pscale_pw_" + _of(_MIXED, 43)),
    _mixed(_TOKEN, "napi_", 40),
    Shape(_TOKEN, r"gl(?:sa|c)_[A-Za-z0-9+/=_]{32,}", f"glsa_{_of(_MIXED, 32)}_{_of(_HEX, 8)}"),
    Shape(_KEY, r"eyJrIjoi[A-Za-z0-9=]{60,}", "eyJrIjoi" + _of(_MIXED, 80)),
    _mixed(_KEY, "CCDB1_", 40, also="_"),
    Shape(_KEY, r"hc[abx]ik_[0-9a-z]{50,}", "hcaik_" + _of(_HEX, 58)),
    Shape(_KEY, r"(?:sdk|api|mob)-[0-9a-f-]{36}", "sdk-0a1b2c3d-4e5f-4978-8a1b-0a1b2c3d4e5f"),
    Shape(_KEY, r"NR(?:AK|JS|II|AA)-[A-Za-z0-9_-]{19,}", "NRAK-" + _of(_UPPER, 27)),
    Shape(_TOKEN, r"sntry[su]_[A-Za-z0-9+/=_-]{40,}", "sntrys_" + _of(_MIXED, 80)),
    Shape(_KEY, r"ph[cx]_[A-Za-z0-9]{40,}", "phx_" + _of(_MIXED, 43)),
    Shape(_TOKEN, r"dt0[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{64}", f"dt0c01.{_of(_UPPER, 24)}.{_of(_UPPER, 64)}"),
    Shape(_KEY, r"xkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}", f"xkeysib-{_of(_HEX, 64)}-{_of(_MIXED, 16)}"),
    Shape(_KEY, r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}", "lin_api_" + _of(_MIXED, 40)),
    # Work and chat
    Shape(_TOKEN, r"xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}", "xoxb-123456789012-" + _of(_MIXED, 24), with_digit=True),
    Shape(_TOKEN, r"xapp-\d-[A-Z0-9]+-\d+-[0-9a-f]{32,}", "xapp-1-A0B1C2D3E4F-1234567890-" + _of(_HEX, 64)),
    Shape(
        "webhook", r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/]{20,}",
        "hooks.slack.com/services/T0AB12CD3/B0AB12CD3/" + _of(_MIXED, 24),
    ),
    Shape(
        "webhook", r"discord(?:app)?\.com/api/webhooks/\d{10,}/[\w-]{30,}",
        "discord.com/api/webhooks/123456789012345678/" + _of(_MIXED, 68),
    ),
    Shape("webhook", r"webhook\.office\.com/webhookb2/[\w@/-]{50,}", "webhook.office.com/webhookb2/" + _of(_HEX, 80)),
    Shape(_TOKEN, r"(?:bot)?\d{8,10}:AA[\w-]{33}", "123456789:AA" + _of(_MIXED, 33), sign=r"\d:AA[\w-]"),
    Shape(
        _TOKEN, r"[MNO][A-Za-z0-9]{23,27}\.[\w-]{6}\.[\w-]{27,40}",
        f"MTIzNDU2Nzg5MDEyMzQ1Njc4.GaB3_9.{_of(_MIXED, 38)}", sign=r"[A-Za-z0-9]\.[\w-]{6}\.[\w-]{20}",
    ),
    _mixed(_TOKEN, "ntn_", 40),
    Shape(_TOKEN, r"secret_[A-Za-z0-9]{43}\b", "secret_" + _of(_MIXED, 43)),
    Shape(_TOKEN, r"fig[dour]_[\w-]{36,}", "figd_" + _of(_MIXED, 40), with_digit=True),
    Shape(_TOKEN, r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}\b", f"pat{_of(_MIXED, 14)}.{_of(_HEX, 64)}", sign=r"[A-Za-z0-9]\.[0-9a-f]{16}"),
    Shape(_KEY, r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}", f"PMAK-{_of(_HEX, 24)}-{_of(_HEX, 34)}"),
    Shape(_TOKEN, r"tskey-[a-z]{2,12}-[A-Za-z0-9]{8,}(?:-[A-Za-z0-9]{20,})?", f"tskey-auth-{_of(_MIXED, 16)}-{_of(_MIXED, 32)}"),
    Shape(_TOKEN, r"ops_eyJ[\w+/=-]{100,}", "ops_eyJ" + _of(_MIXED, 250)),
    Shape(_KEY, r"A3-[A-Z0-9]{6}-[A-Z0-9]{6}(?:-[A-Z0-9]{5}){4}", "A3-QWER7T-YU2IOP-3ASDQ-WER7T-YU2IO-P3ASD"),
    _mixed(_TOKEN, "CFPAT-", 40, also="_-"),
    _mixed(_TOKEN, "fio-u-", 60, also="_=-"),
    _mixed(_TOKEN, "dnkey-", 70, also="_=-"),
    Shape(_KEY, r"rdme_[a-z0-9]{70}", "rdme_" + _of(_HEX, 70)),
    Shape("secret", r"s-s4t2(?:ud|af)-[0-9a-f]{64}", "s-s4t2ud-" + _of(_HEX, 64)),
    _mixed(_KEY, "ico-", 32),
    Shape(_TOKEN, r"sm_(?:aat|pat|sat)_[A-Za-z0-9]{16,}", "sm_aat_" + _of(_MIXED, 16)),
    _mixed(_TOKEN, "tk-us-", 48, also="_-"),
    Shape(_TOKEN, r"polar_(?:oat|pat)_[A-Za-z0-9]{30,}", "polar_oat_" + _of(_MIXED, 40)),
    Shape(_TOKEN, r"tfp_[A-Za-z0-9_.=-]{59}", "tfp_" + _of(_MIXED, 59)),
    Shape(_TOKEN, r"pat-(?:na|eu)\d-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "pat-na1-0a1b2c3d-4e5f-4978-8a1b-0a1b2c3d4e5f"),
    Shape(_TOKEN, r"SWMTKN-1-[0-9a-z]{49,}-[0-9a-z]{20,}", f"SWMTKN-1-{_of('a1b2c3d4', 50)}-{_of('a1b2c3d4', 25)}"),
    Shape(_TOKEN, r"K10[0-9a-f]{64}::(?:server|node):[0-9a-f]{32}", f"K10{_of(_HEX, 64)}::server:{_of(_HEX, 32)}"),
    _mixed("private key", "xprv", 90),
    # Payment, mail, shops, maps
    Shape(_KEY, r"(?:sk|rk|pk)_(?:live|test|prod)_[A-Za-z0-9]{16,}", "sk_live_" + _of(_MIXED, 24)),
    Shape(_KEY, r"(?:live|test)_[0-9a-f]{35}\b", "live_" + _of(_HEX, 35)),
    Shape(_TOKEN, r"access-(?:sandbox|development|production)-[0-9a-f-]{36}", "access-sandbox-0a1b2c3d-4e5f-4978-8a1b-0a1b2c3d4e5f"),
    Shape("secret", r"p8e-[a-z0-9]{32}\b", "p8e-" + _of(_HEX, 32)),
    _mixed(_KEY, "whsec_", 24, also="+/="),
    Shape(_KEY, r"SG\.[\w-]{16,32}\.[\w-]{32,64}", f"SG.{_of(_MIXED, 22)}.{_of(_MIXED, 43)}"),
    Shape(_KEY, r"SK[0-9a-f]{32}\b", "SK" + _of(_HEX, 32)),
    Shape(_KEY, r"key-[0-9a-f]{32}\b", "key-" + _of(_HEX, 32)),
    Shape(_KEY, r"[0-9a-f]{32}-us\d{1,2}\b", _of(_HEX, 32) + "-us12", sign=r"[0-9a-f]-us\d"),
    Shape(_KEY, r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}", f"re_{_of(_MIXED, 8)}_{_of(_MIXED, 24)}", with_digit=True),
    Shape(_TOKEN, r"shp(?:at|ca|pa|ss|ua)_[0-9a-fA-F]{32}", "shpat_" + _of(_HEX, 32)),
    Shape(_TOKEN, r"EAAA[A-Za-z0-9_-]{60}", "EAAA" + _of(_MIXED, 60), with_digit=True),
    Shape(_TOKEN, r"sq0[a-z]{3}-[\w-]{22,43}", "sq0csp-" + _of(_MIXED, 43), with_digit=True),
    Shape(_TOKEN, r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}", f"access_token$production${_of('a1b2c3d4', 16)}${_of(_HEX, 32)}"),
    Shape(_KEY, r"FLW(?:SECK|PUBK)(?:_TEST)?-[0-9a-zA-Z]{12,}", "FLWSECK_TEST-" + _of(_HEX, 32)),
    Shape(_TOKEN, r"sk\.eyJ[\w-]{40,}\.[\w-]{20,}", f"sk.eyJ{_of(_MIXED, 60)}.{_of(_MIXED, 22)}"),
    Shape(_KEY, r"AGE-SECRET-KEY-1[0-9A-Z]{50,}", "AGE-SECRET-KEY-1" + _of(_UPPER, 58)),
    Shape(_TOKEN, r"EAA[A-Z][A-Za-z0-9]{80,}", "EAAC" + _of(_MIXED, 150)),
    Shape(_TOKEN, r"duffel_(?:test|live)_[\w=-]{43}", "duffel_live_" + _of(_MIXED, 43)),
    Shape(_TOKEN, r"EZ[AT]K[A-Za-z0-9]{54}", "EZAK" + _of(_MIXED, 54)),
    Shape(_TOKEN, r"shippo_(?:live|test)_[0-9a-f]{40}", "shippo_live_" + _of(_HEX, 40)),
    # Of no one service
    Shape(
        _TOKEN, r"eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
    ),
    Shape(_TOKEN, r"eyJ[\w-]{15,}\.[\w-]*\.[\w-]{10,}\.[\w-]{20,}\.[\w-]{16,}", f"eyJhbGciOiJkaXIiLCJl..{_of(_MIXED, 16)}.{_of(_MIXED, 60)}.{_of(_MIXED, 22)}"),
)  # fmt: skip
