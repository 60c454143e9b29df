"""Secrets in sentences and in what servers print: "log in with admin / ...", "Password for user elastic: ..."."""

from __future__ import annotations

from sess_redaction import judges
from sess_redaction.judges import Context

_NAMED = r"(?i:passwor[dt]|passwd|pwd?|pass|passphrase|passcode|kennwort|wachtwoord|senha|contraseña|mot de passe)"
_SO_CALLED = r"(?i:password|passphrase|passcode|api key|token|secret)"
_LOGIN = r"(?i:log(?:ged|ging)?[ -]?in|sign(?:ed|ing)?[ -]?in|login|credentials|account)"
_PHRASE = (
    r"(?i:(?:recovery|seed|secret|backup|mnemonic|wallet)[ _-]?(?:phrase|words|seed)|mnemonic|seed)"
)
_WORDS = r"(?:(?:\d{1,2}[.)] ?)?[a-z]{3,8}[ ,]{1,3}){11,23}(?:\d{1,2}[.)] ?)?[a-z]{3,8}"
_HASHING = (
    r"(?:crypt|hashpw|password_hash|generate_password_hash|make_password|set_password|check_password|pbkdf2_hmac|bcrypt\.hash(?:Sync)?"
    r"|PBKDF2|scrypt(?:Sync)?|hmac\.new)"
)

CONTEXTS = (
    Context(
        rf"(?<![\w-]){_NAMED} (?:for|of|on|to|zu|für) (?:[^\n:=\"'`|]{{1,40}}?|(?:key )?[\"'][^\n\"']{{1,100}}[\"'])(?: is:?| was|:| =) ([^\s$])", judges.spoken,
        "pw for staging is hunter2x", "password for bob is required", rf"{_NAMED} (?:for|of|on|to|zu|für) ",
    ),
    Context(
        rf"(?<![\w-]){_NAMED} (?:lautet|ist|est|es|war|è|é|jest|means|reads) ([^\s$])", judges.spoken,
        "Das Passwort lautet hunter2x", "Das Passwort lautet wie immer", rf"{_NAMED} (?:lautet|ist|est|es|war|è|é|jest|means|reads) ",
    ),
    Context(
        rf"{_NAMED} [\w.-]{{1,40}} = ([^\s$\"'])", judges.spoken,
        "PASSWORD elastic = hunter2x", "PASSWORD elastic = None", rf"{_NAMED} [\w.-]+ = ",
    ),
    Context(
        rf"(?i:use|using|set|enter|type|try|put|chose|picked) ([^\s\"'`$]{{6,100}}) (?:as|for) (?:the |my |your |its |an? )?(?:[a-z]{{1,20}} ){{0,2}}{_SO_CALLED}\b(?! (?:count|field|hash|prompt|type|name|file|stor|manag|sourc|provid|model|limit|bucket|pars))",
        judges.spoken, "Use hunter2x as the password", "use bcrypt as the password hash", rf" (?:as|for) [a-z ]*{_SO_CALLED}", back=160,
    ),
    Context(
        rf"{_LOGIN}(?: (?:with|using|as|is|are|to|into|at|on|[\w.-]{{1,30}})){{0,4}}? (?:with|using|as|is|are) [\w.@+-]{{2,60}}(?: ?/ ?|:| and )([^\s$/])",
        judges.spoken, "log in with admin / hunter2x", "log in with google / github", rf"{_LOGIN} [a-z ]*(?:with|using|as|is|are) ",
    ),
    Context(
        rf"(?<![\w-]){_PHRASE}[\"'`*]{{0,3}}(?:\s?[:=]| is:?| are:?)\s{{1,4}}[\"'`]?({_WORDS})(?![\w-])", judges.phrase,
        "seed phrase: " + "abandon " * 11 + "about", "seed phrase: twelve words that you were given", rf"{_PHRASE}[\"'`*]*(?:\s?[:=]| is| are)",
    ),
    Context(
        r"(?i:(?:recovery|backup|scratch|emergency|2fa) codes?)[^\n]{0,30}[:\n]\s{0,4}((?:[-*\d.) ]{0,6}[A-Za-z0-9]{4,10}(?:-[A-Za-z0-9]{4,10}){1,3}[\s,]{0,3}){1,16})", judges.codes,
        "recovery codes: 1nlb9-7zos4", "recovery codes: well-known", "(?i:(?:recovery|backup|scratch|emergency|2fa) codes?)",
    ),
    Context(
        r"New value: ([A-Za-z0-9*_=+-]{15,})", judges.spoken, "New value: aB39xQ7kLm2Zp8RtQw1x", "New value: configuration_of_it", "New value: ",
    ),
    Context(
        rf"(?<![\w.]){_HASHING}\((?:[\"'][\w-]{{1,12}}[\"'], ?)?b?(\\{{0,3}}[\"'])", judges.argument,
        "crypt('hunter2x', gen_salt('bf'))", "crypt('password', salt)", rf"{_HASHING}\(",
    ),
    Context(
        r"(?:pgp_sym_(?:en|de)crypt|(?i:aes_(?:en|de)crypt)|createHmac)\([^,()\n]{1,200}, ?(\\{0,3}[\"'])", judges.argument,
        "pgp_sym_encrypt('a', 'hunter2x')", "createHmac('sha256', 'secret')", r"(?:pgp_sym_(?:en|de)crypt|(?i:aes_(?:en|de)crypt)|createHmac)\(",
    ),
    Context(
        r"\b(?:PSK|XAUTH|EAP) (\\{0,3}[\"'])", judges.argument, ': PSK "hunter2x"', ': PSK "password"', r"(?:PSK|XAUTH|EAP) \\*[\"']",
    ),
    Context(
        r"(?<![\w/])(?:sips?|smtps?|imaps?|xmpp|ftp|socks5h?):[\w.+-]{1,60}:(?:([^\s:/\"']{6,100})@)", judges.matched("password"),
        "sip:demo:hunter2x@pbx.example.org", "sip:demo@pbx.example.org", r"(?:sips?|smtps?|imaps?|xmpp|ftp|socks5h?):[\w.+-]+:",
    ),
    Context(
        r" (?:-b|--cookie)[ =]?(\\{0,3}[\"'])?[\w.-]{1,60}=([^\s\"'$])", judges.cookie_option,
        "curl -b 'session=0a1b2c3d4e5f' https://h", "git switch -b a=b", r" (?:-b|--cookie)[ =]?[\\\"']*[\w.-]+=",
    ),
    Context(
        r"SETUSER \S{1,60}(?: on)?(?: [~&+]\S{1,40}){0,4} >([^\s$])", judges.value("password"), "ACL SETUSER demo on >hunter2x ~*", "ACL SETUSER demo on >$PASS", "SETUSER ",
    ),
    Context(
        r" (?:-u|-U|-l|--user|--username)[ =]?[\w.@\\-]{1,60} (?:[^\n|;&]{0,120} )?(?:-p|-P|-w|-pw|--pass)[ =]([^\s$-])", judges.spoken,
        "cypher-shell -u demo -p hunter2x", "docker run -u 1000 -p 8080:80", r" (?:-u|-U|-l|--user|--username)[ =]?[\w.@\\-]+ [^\n]*(?:-p|-P|-w|-pw|--pass)[ =]",
    ),
    Context(
        r" (?:-p|-P|-w|-pw|-auth|/rp|/p)[ :]([^\s$-])", judges.random_operand,
        "tool -p 'aB3$xZ9k7Q!w'", "tool -p com.example.app2", r" (?:-p|-P|-w|-pw|-auth|/rp|/p)[ :][^\s$-]",
    ),
    Context(
        r"(?i:\b\w{0,30}(?:login|auth|credentials?|client|connect|account|register)\w{0,30})\([ \t]{0,4}(\\{0,3}[\"'])[\w.@+-]{2,60}\1,[ \t]{0,4}(\\{0,3}[\"'])", judges.spoken,
        "login_user('demo@example.org', 'hunter2x')", "client('demo', 'handler')", r"(?i:(?:login|auth|credentials?|client|connect|account|register)\w*)\([ \t]*\\*[\"']", back=40,
    ),
    Context(
        r"(?i:product|licen[cs]e|serial|activation|registration)(?:[ _-]?(?i:key|code|number))?[^\w\n]{1,6}((?:[A-Z0-9]{4,6}-){3,7}[A-Z0-9]{4,6})(?![\w-])", judges.codes,
        "Product key: AB1CD-EF2GH-IJ3KL-MN4OP", "serial: WELL-KNOWN-NAME-HERE", r"(?i:product|licen[cs]e|serial|activation|registration)[ _-]?(?i:key|code|number)?[^\w\n]",
    ),
    Context(
        r"chpasswd:\s{1,20}(?:expire: \w{1,8}\s{1,20})?list: \|\n((?:[ \t]{1,20}[\w.-]{1,40}:\S{4,100}\n?){1,20})", judges.matched("password"),
        "chpasswd:\n  list: |\n    demo:hunter2x\n", "chpasswd:\n  list: []", r"chpasswd:\s",
    ),
    Context(
        r"(?:^|\n)user [\w.@-]{1,60} ([^\s$]{6,100})(?=\r?\n|\Z)", judges.spoken, "\nuser demo hunter2x\nbin", "\nuser demo required", r"(?:^|\n)user [\w.@-]+ ",
    ),
    Context(
        r"--password-command[ =][\"']?(?:echo|printf) ([^\s\"'$])", judges.spoken,
        'restic --password-command "echo hunter2x"', 'restic --password-command "echo $PASS"', "--password-command[ =]",
    ),
)  # fmt: skip
