"""Programs and functions that take a password: `mysql -p...`, `client.login("bob", "...")`."""

from __future__ import annotations

from sess_redaction import judges, names
from sess_redaction.judges import Judge

Row = tuple[str, Judge, str, str, str, int]  # as the fields of a context

# programs, option, what is between the option and its value, a command up to the value
_PROGRAMS = (
    ("sshpass", "p", " ?", "sshpass -p "),
    ("mysql|mysqldump|mysqladmin|mariadb|mysqlsh", "p", "", "mysql -u demo -p"),
    ("7z|7za|7zr|unrar", "p", "", "7z x -p"),
    ("unzip|zip -[a-z]+", "P", " ", "unzip -P "),
    ("redis-cli", "a", " ", "redis-cli -h h -a "),
    ("ldap(?:search|add|modify|whoami)", "w", " ", "ldapsearch -D cn=demo -w "),
    ("(?:docker|podman|az|oc|cf|helm registry) login", "p", " ", "docker login -u demo -p "),
    ("(?:mongo|mongosh|mongodump|mongorestore|sqlcmd|mosquitto_pub)", "[pP]", " ?", "mongosh -u demo -p "),
    ("twine upload|cqlsh|useradd|usermod", "p", " ", "twine upload -u demo -p "),
    ("ssh-keygen", "N", " ", "ssh-keygen -t ed25519 -N "),
    ("keytool|jarsigner", "(?:store|key|srcstore|deststore)pass", " ", "keytool -list -storepass "),
    ("gpg", "-passphrase", "[ =]", "gpg --batch --passphrase "),
    ("gh secret set", "(?:b|-body)", "[ =]?", "gh secret set NAME -b "),
    ("openssl (?:enc|aes|des|pkcs|rsa|genrsa|ec)", "[kK]", " ", "openssl enc -aes-256-cbc -k "),
    ("curl", "-oauth2-bearer", "[ =]", "curl --oauth2-bearer "),
    ("rdesktop", "p", " ", "rdesktop -u demo -p "),
)  # fmt: skip
_QUOTE = r"\\{0,3}[\"']"
_USER = rf"(?:\$?[\w.]{{1,40}}|{_QUOTE}[^\"'\n]{{0,80}}[\"'])"
_LOGINS = r"basic_?auth|basic_?credentials?|network_?credential|login|set_?credentials"
# Numbers are secrets after these; `pin` in small letters is as often one of a chip.
_CODES = r"(?:\bPINs?|\b(?:pin|Pin)(?:[_ -]?(?:code|number|no))|\b[a-z]+(?:_pin|Pin)|[A-Z]_PIN|(?i:\b(?:[a-z]+[_-])*t?otp(?:[_ -]?code)?|one[- ]time (?:code|password|passcode)|verification[_ -]code|passcode))"
_READERS = r"sudo -S|passwd|vercel env add|wrangler secret put|--password-stdin|--with-token|gh secret set|cryptsetup"


def _program(programs: str, letters: str, between: str, sample: str) -> Row:
    return (
        rf"(?:{programs})(?: [^\n|;&]{{0,200}})? -{letters}{between}([\"']\S|[^\s\"'$-]|-\S{{0,80}}\d)",
        judges.value(names.PASSWORD), f"{sample}hunter2x", f"{sample}$PASS", rf"(?:{programs}) [^\n]", 0,
    )  # fmt: skip


ROWS: tuple[Row, ...] = (
    *(_program(*row) for row in _PROGRAMS),
    (
        r"(?:vault login(?: -[\w=-]{1,40})*|zip -P|rabbitmqctl (?:add_user|change_password) \S{1,60}|user-secrets set \S{1,80}|mc (?:alias set|config host add) \S{1,60} \S{1,200} \S{1,60}|(?:>|redis-cli) AUTH) ([^\s$-])", judges.operand, "vault login hunter2x", "vault login -method=oidc",
        r"vault login |zip -P |rabbitmqctl |user-secrets set |mc (?:alias|config) |(?:>|redis-cli) AUTH ", 0,
    ),
    (
        r"[a-z]freerdp3?(?: [^\n|;&]{0,200})? /p:([^\s$])", judges.value(names.PASSWORD),
        "xfreerdp /u:demo /p:hunter2x /v:h", "xfreerdp /u:demo /p:$PASS /v:h", r"[a-z]freerdp3? [^\n]", 0,
    ),
    (
        r"USER [^\s]{1,80}[^\n]{0,20}\n(?:[^\n]{0,200}\n){0,3}?[^\n]{0,60}?\bPASS ([^\s$])", judges.value(names.PASSWORD),
        "> USER demo\n< 331 ok\n> PASS hunter2x", "> USER demo\n< 331 ok\n> PASS ****", r"\bUSER [^\s]+[^\n]*\n", 0,
    ),
    (
        rf"(?<![A-Za-z]){_CODES}[\\\"'`*]{{0,4}}(?: ?[:=] ?| is:? | )[\\\"'`*]{{0,4}}(\d{{3}}[ -]?\d{{3,5}}|\d{{4,10}})(?![\w.,:/-]\w|\w)", judges.matched(names.PASSWORD),
        "PIN: 4821", "PIN: 13", rf"{_CODES}[\\\"'`*]*(?: ?[:=] ?| is:? | )[\\\"'`*]*\d\d\d", 0,
    ),
    (
        rf"(?:{_READERS})[^\n|;]{{0,80}}?<<< ?\$?([^\s$])", judges.value(names.PASSWORD),
        "sudo -S <<< hunter2x true", "sudo -S <<< $PASS true", "<<<", 160,
    ),
    (
        r"(?:sqlplus(?: -\S{1,10}){0,3} |oracle:thin:)[\w.-]{1,60}/([^\s@/$])", judges.before_host,
        "sqlplus demo/hunter2x@//db:1521/XE", "sqlplus demo/$PASS@db", "sqlplus |oracle:thin:", 0,
    ),
    (
        r"(?:sonar\.login=|bundle config (?:set )?(?:--\w{1,10} )?\S{1,80} [\w.-]{1,60}:)([^\s$])", judges.operand,
        "sonar-scanner -Dsonar.login=hunter2x", "sonar-scanner -Dsonar.login=$TOKEN", r"sonar\.login=|bundle config ", 0,
    ),
    (
        rf"(?:(?i:{_LOGINS})\(|auth ?[=:] ?[(\[])[ \t]{{0,4}}{_USER},[ \t]{{0,4}}(?:Some\()?({_QUOTE})", judges.argument,
        'client.login("demo", "hunter2x")', 'client.login("demo", "password")', rf"(?i:{_LOGINS})\(|auth ?[=:] ?[(\[]", 0,
    ),
    (
        rf"(?:new PDO|mysqli?_connect|new mysqli|getConnection)\([^,()\n]{{1,200}},[ \t]?{_USER},[ \t]?({_QUOTE})", judges.argument,
        "new PDO('mysql:host=h', 'demo', 'hunter2x')", "new PDO('mysql:host=h', 'demo', '')",
        r"(?:new PDO|mysqli?_connect|new mysqli|getConnection)\(", 0,
    ),
    (
        rf"(?:bearer_?[aA]uth|SecretStr|SecretBytes)\([ \t]{{0,4}}b?({_QUOTE})", judges.argument,
        'SecretStr("hunter2x")', 'SecretStr("password")', r"(?:bearer_?[aA]uth|SecretStr|SecretBytes)\(", 0,
    ),
    (
        rf"jwt\.(?:sign|verify|encode|decode)\((?:\{{[^{{}}\n]{{0,200}}\}}|[^,\n]{{1,120}}),[ \t]?({_QUOTE})(?![HREP]S\d{{3}})", judges.argument,
        "jwt.sign(payload, 'hunter2x')", "jwt.sign(payload, 'HS256')", r"jwt\.(?:sign|verify|encode|decode)\(", 0,
    ),
)  # fmt: skip
