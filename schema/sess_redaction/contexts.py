"""Secrets that are known by where they stand: headers, addresses, options of programs, key files.

Each context has a sign, which RE2 and `re` read alike and which begins where the context does unless
it says how far back to look; one sample; and one text that it spares. A sign
has no counted repetitions: many of them together are slow in RE2.
"""

from __future__ import annotations

from sess_redaction import assignments, judges, names, sentences, tables
from sess_redaction.judges import Context

# -- programs and functions that take a password: `mysql -p...`, `client.login("bob", "...")`

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
    ("ssh-keygen", "P", " ", "ssh-keygen -p -P "),
    ("bcp|osql|isql|ipmitool|mosquitto_sub", "P", " ?", "ipmitool -U demo -P "),
    ("snmp(?:walk|get|set|bulkwalk)", "A", " ", "snmpget -u demo -A "),
    ("snmp(?:walk|get|set|bulkwalk)", "X", " ", "snmpget -u demo -X "),
    ("psexec|evil-winrm|nxc|crackmapexec|hydra|ncftpput", "p", " ", "psexec -u demo -p "),
    ("plink|pscp|psftp", "pw", " ", "plink -l demo -pw "),
    ("security add-(?:generic|internet)-password", "w", " ?", "security add-generic-password -a demo -w "),
    ("yarn config|npm config|pnpm config", "-password", "[ =]", "npm config --password "),
    ("keytool|jarsigner", "(?:store|key|srcstore|deststore)pass", " ", "keytool -list -storepass "),
    ("gpg", "-passphrase", "[ =]", "gpg --batch --passphrase "),
    ("gh secret set", "(?:b|-body)", "[ =]?", "gh secret set NAME -b "),
    ("openssl (?:enc|aes|des|pkcs|rsa|genrsa|ec)", "[kK]", " ", "openssl enc -aes-256-cbc -k "),
    ("curl", "-oauth2-bearer", "[ =]", "curl --oauth2-bearer "),
    ("rdesktop", "p", " ", "rdesktop -u demo -p "),
)  # fmt: skip
_QUOTE = r"\\{0,3}[\"']"
_USER = rf"(?:\$?[\w.]{{1,40}}|{_QUOTE}[^\"'\n]{{0,80}}[\"'])"
_LOGINS = (
    r"basic_?auth|basic_?credentials?|network_?credential|login|(?:set|with|use)_?credentials|authenticate|\bdb\.auth|wifi\.begin"
    r"|(?:sign|log)_?in|(?:create|add)_?user|username_?password_?credentials?|password_?authentication"
)
# Numbers are secrets after these; `pin` in small letters is as often one of a chip.
_CODES = r"(?:\bPINs?|\b(?:pin|Pin)(?:[_ -]?(?:code|number|no))|\b[a-z]+(?:_pin|Pin)|[A-Z]_PIN|(?i:\b(?:[a-z]+[_-])*t?otp(?:[_ -]?code)?|one[- ]time (?:[a-z]+ )?(?:code|password|passcode)|(?:login|security|confirmation|2fa|mfa|sms|authentication) code|verification[_ -]code|passcode))"
_READERS = r"sudo -S|passwd|vercel env add|wrangler secret put|--password-stdin|--with-token|gh secret set|cryptsetup"


def _of_program(programs: str, letters: str, between: str, sample: str) -> Context:
    return Context(
        rf"(?:{programs})(?: [^\n|;&]{{0,200}})? -{letters}{between}([\"']\S|[^\s\"'$-]|-\S{{0,80}}\d)",
        judges.value(names.PASSWORD), f"{sample}hunter2x", f"{sample}$PASS", rf"(?:{programs}) [^\n]",
    )  # fmt: skip


COMMANDS = (
    *(_of_program(*program) for program in _PROGRAMS),
    Context(
        r"(?:vault login(?: -[\w=-]{1,40})*|zip -P|rabbitmqctl (?:add_user|change_password) \S{1,60}|vault operator unseal|bw unlock|rclone obscure|encrypt_string|mosquitto_passwd -\w{0,3}b\w{0,3} \S{1,80} \S{1,60}|NickServ IDENTIFY|net use \S{1,100}|wpa_passphrase \S{1,60}|http-basic\.\S{1,60} \S{1,60}|auth-pass \S{1,60}|net user \S{1,60}|(?:pdftk|qpdf)[^\n|;]{1,100}? (?:input|user|owner)_pw|user-secrets set \S{1,80}|mc (?:alias set|config host add) \S{1,60} \S{1,200} \S{1,60}|(?:>|redis-cli) AUTH) ([^\s$-])", judges.operand, "vault login hunter2x", "vault login -method=oidc",
        r"vault (?:login|operator unseal) |zip -P |rabbitmqctl |bw unlock |rclone obscure |encrypt_string |mosquitto_passwd |NickServ IDENTIFY |net use |wpa_passphrase |http-basic\.|auth-pass |net user |pdftk |qpdf |user-secrets set |mc (?:alias|config) |(?:>|redis-cli) AUTH ",
    ),
    Context(
        r"[a-z]freerdp3?(?: [^\n|;&]{0,200})? /p:([^\s$])", judges.value(names.PASSWORD),
        "xfreerdp /u:demo /p:hunter2x /v:h", "xfreerdp /u:demo /p:$PASS /v:h", r"[a-z]freerdp3? [^\n]",
    ),
    Context(
        r"USER [^\s]{1,80}[^\n]{0,20}\n(?:[^\n]{0,200}\n){0,3}?[^\n]{0,60}?\bPASS ([^\s$])", judges.value(names.PASSWORD),
        "> USER demo\n< 331 ok\n> PASS hunter2x", "> USER demo\n< 331 ok\n> PASS ****", r"\bUSER [^\s]+[^\n]*\n",
    ),
    Context(
        rf"(?<![A-Za-z]){_CODES}[\\\"'`*]{{0,4}}(?: ?[:=] ?| is:? | )[\\\"'`*]{{0,4}}(\d{{3}}[ -]?\d{{3,5}}|\d{{4,10}})(?![\w.,:/-]\w|\w)", judges.matched(names.PASSWORD),
        "PIN: 4821", "PIN: 13", rf"{_CODES}[\\\"'`*]*(?: ?[:=] ?| is:? | )[\\\"'`*]*\d\d\d",
    ),
    Context(
        rf"(?:{_READERS})[^\n|;]{{0,80}}?<<< ?\$?([^\s$])", judges.value(names.PASSWORD),
        "sudo -S <<< hunter2x true", "sudo -S <<< $PASS true", "<<<", back=160,
    ),
    Context(
        r"(?:sqlplus(?: -\S{1,10}){0,3} |oracle:thin:)[\w.-]{1,60}/([^\s@/$])", judges.before_host,
        "sqlplus demo/hunter2x@//db:1521/XE", "sqlplus demo/$PASS@db", "sqlplus |oracle:thin:",
    ),
    Context(
        r"(?:sonar\.login=|bundle config (?:set )?(?:--\w{1,10} )?\S{1,80} [\w.-]{1,60}:)([^\s$])", judges.operand,
        "sonar-scanner -Dsonar.login=hunter2x", "sonar-scanner -Dsonar.login=$TOKEN", r"sonar\.login=|bundle config ",
    ),
    Context(
        rf"(?:(?i:{_LOGINS})\(|auth ?[=:] ?[(\[])[ \t]{{0,4}}{_USER},[ \t]{{0,4}}(?:Some\()?({_QUOTE})", judges.argument,
        'client.login("demo", "hunter2x")', 'client.login("demo", "password")', rf"(?i:{_LOGINS})\(|auth ?[=:] ?[(\[]",
    ),
    Context(
        rf"(?:new PDO|mysqli?_connect|new mysqli|getConnection)\([^,()\n]{{1,200}},[ \t]?{_USER},[ \t]?({_QUOTE})", judges.argument,
        "new PDO('mysql:host=h', 'demo', 'hunter2x')", "new PDO('mysql:host=h', 'demo', '')",
        r"(?:new PDO|mysqli?_connect|new mysqli|getConnection)\(",
    ),
    Context(
        rf"(?:bearer_?[aA]uth|SecretStr|SecretBytes)\([ \t]{{0,4}}b?({_QUOTE})", judges.argument,
        'SecretStr("hunter2x")', 'SecretStr("password")', r"(?:bearer_?[aA]uth|SecretStr|SecretBytes)\(",
    ),
    Context(
        rf"jwt\.(?:sign|verify|encode|decode)\((?:\{{[^{{}}\n]{{0,200}}\}}|[^,\n]{{1,120}}),[ \t]?({_QUOTE})(?![HREP]S\d{{3}})", judges.argument,
        "jwt.sign(payload, 'hunter2x')", "jwt.sign(payload, 'HS256')", r"jwt\.(?:sign|verify|encode|decode)\(",
    ),
)  # fmt: skip

# -- all

CONTEXTS = (
    Context(
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----", judges.pem,
        "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEA" * 4 + "\n-----END RSA PRIVATE KEY-----",
        'if "-----BEGIN PRIVATE KEY-----" in text:', r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY",
    ),
    Context(
        r"Private-Lines: \d+\r?\n((?:[A-Za-z0-9+/=]+\r?\n)*[A-Za-z0-9+/=]+(?:\r?\nPrivate-MAC: [0-9a-f]+)?)",
        judges.matched("private key"), "Private-Lines: 2\nAAAAgQCkL0aB39\nAAAAgQ==", "Private-Lines: 2",
        "Private-Lines: ",
    ),
    Context(
        r"://[^\s:/@\"'`<>\[\]{}$]*:", judges.address,
        "postgres://demo:hunter2@db.example.org/demo", "postgres://demo:$PASSWORD@db.example.org",
        r"://[^\s:/@\"'`<>\[\]{}$]*:",
    ),
    Context(
        r"://([^\s:/@\"'`<>\[\]{}$\\]{8,200})@[A-Za-z0-9]", judges.token_of_address,
        "https://" + "0a1b2c3d" * 5 + "@git.example.org/o/r", "https://name@git.example.org",
        r"://[^\s:/@\"'`<>\[\]{}$\\]+@",
    ),
    Context(
        r"(?i:bearer) {1,4}([\"']?[A-Za-z0-9._~+/=-]{16})", judges.bearer,
        "Authorization: Bearer " + "aB3.9" * 6, "Bearer authentication-required",
        "(?i:bearer) ",
    ),
    Context(
        r"(?i:authorization)[\\\"'\]]{0,6}(?:[ \t]{0,4}[:=,][ \t]{0,4}|[ \t]{1,4}(?=[\\\"']))((?:\\{0,4}[\"'])?)"
        r"(?:(?i:basic|token|digest|apikey|bearer|aws4-hmac-sha256|negotiate|key) {1,4})?(\S)",
        judges.header, "Authorization: Basic dXNlcjpodW50ZXIy", "Authorization: Basic $CREDENTIALS",
        r"(?i:authorization)[\\\"'\]]*[ \t]*[:=,\"'\\]",
    ),
    Context(
        r"[?&](?i:sig|signature|x-amz-signature|x-goog-signature|x-amz-credential|code|key|auth|auth_?key|sid|session_?(?:id|key)?|ticket|jwt|hmac)"
        r"=([^\s&#\"'`<>\\(){}$,;|]{8,})", judges.parameter,
        "https://a.blob.core.windows.net/c/b?sv=2024&sig=" + "aB3%2" * 9, "?sig=short",
        "[?&](?i:sig|signature|x-amz-signature|x-goog-signature|x-amz-credential|code|key|auth|auth_?key|sid|session_?(?:id|key)?|ticket|jwt|hmac)=",
    ),
    Context(
        r"(?i:set-cookie|cookie)(?:[\\\"']{0,5}[ \t]{0,4}[:=]|[\\\"']{1,5},) ?[\\\"']{0,5}[\w.-]+="
        r"(?:[^\s;\"'\\]{0,5}; ?[\w.-]+=){0,20}([^\s;\"\\]{4})", judges.cookies,
        "Set-Cookie: session=0a1b2c3d4e5f; Path=/", "Cookie: theme=dark",
        r"(?i:cookie)[\\\"']*[ \t]*[:=,]",
    ),
    Context(
        r" (?:-[uUaA]|--user|--auth)[ =]?[\\\"']{0,6}[\w.@+-]+[:,%](\S)", judges.user_of_curl,
        "curl -s -u demo:hunter2 https://example.org", "docker run -u 1000:hunter2",
        r" (?:-[uUaA]|--user|--auth)[ =]?[\\\"']*[\w.@+-]+[:,%]",
    ),
    Context(
        r"(?:machine\s+\S+|default)\s+login\s+\S+\s+password\s+(\S)", judges.value(names.PASSWORD),
        "machine example.org login demo password hunter2", "machine x login y password $PASS",
        r"machine\s+\S[^\n]*\n?[^\n]*login|default\s+login",
    ),
    Context(
        r"\"auth\\*\"\s*:\s*\\*\"([A-Za-z0-9+/]{12,}={0,2})\\*\"", judges.matched("token"),
        '{"auths": {"hub.example.org": {"auth": "ZGVtbzpodW50ZXIy"}}}', '"auth": "basic"',
        r"\"auth\\*\"\s*:",
    ),
    Context(
        r"(?i:identified(?: with [\w\"']{1,40})? (?:by|as)(?: password)?) {1,4}(\\*[\"'])",
        judges.value(names.PASSWORD), "CREATE USER x IDENTIFIED BY 'hunter2'", "IDENTIFIED BY '?'",
        "(?i:identified) (?i:with|by|as)",
    ),
    Context(
        r"(\$(?:2[aby]\$\d\d\$[./A-Za-z0-9]{53}|(?:apr1|1|5|6|y)\$[^\s:$]{1,40}\$[./A-Za-z0-9]{20,}"
        r"|argon2id?\$[^\s:]{30,}))",
        judges.matched("password hash"), "demo:$6$salt$" + "aB39xQ7k" * 10, "cost is $6 and $5",
        r"\$(?:2[aby]|apr1|1|5|6|y|argon2id?)\$",
    ),
    Context(
        r"stats auth [\w.@+-]+:(\S)", judges.value(names.PASSWORD),
        "stats auth demo:hunter2", "stats auth demo:$PASSWORD", "stats auth ",
    ),
    Context(
        r"(?:enable|privilege \d+|username \S+|neighbor \S+) (?:secret|password) [05789] (\S)",
        judges.value(names.PASSWORD), "enable secret 0 hunter2", "enable secret 0 $PASSWORD",
        "(?:secret|password) [05789] ", back=80,
    ),
    Context(
        r"(?:requirepass|masterauth|aws_secret_access_key|:_authToken|:_password) {1,4}([^\s=:])",
        judges.value(names.PASSWORD), "requirepass hunter2", "requirepass $PASS",
        r"(?:requirepass|masterauth|aws_secret_access_key|:_authToken|:_password) ",
    ),
    Context(
        rf"(?:\bENV|\bsetenv|config(?:ure)?(?: set| add| --[a-z]{{2,10}})*|\bset -[a-zU]{{1,4}}) [\w./:-]{{0,60}}(?i:{names.WORDS}) {{1,4}}([^\s=:])",
        judges.rest_of_instruction, "ENV DB_PASSWORD hunter2", "ENV DB_PASSWORD $PASS",
        r"ENV [A-Z]|setenv |config(?:ure)? |\bset -[a-zU]",
    ),
    Context(
        r"(?:(?i:with|using|use|as|and)|,(?= (?i:pass)))(?: (?:the|my|this|a|user|admin|root|db|database|access|client|auth|bot)){0,2} (?:the )?(?i:password|passphrase|passcode|api key|token|secret) ([^\s\"'`(]|\([^\s)]{6,100}(?:\s|\Z))",
        judges.word, "log in with password hunter2x", "log in with password authentication",
        r"(?:(?i:with|using|use|as|and) [a-z ]*|, )(?i:password|passphrase|passcode|api key|token|secret) [^\s\"'`]",
    ),
    Context(
        r"htpasswd -[A-Za-z]*b[A-Za-z]* {1,2}(?:\S{1,200} {1,2})?[^\s-]\S{0,100} {1,2}([^\s-]|-\S{0,80}\d)", judges.value(names.PASSWORD),
        "htpasswd -b .htpasswd demo hunter2", "htpasswd -b .htpasswd demo $PASS", "htpasswd -[A-Za-z]*b",
    ),
    Context(
        r"(?i:convertto-securestring)(?i: {1,2}-string)? {1,2}(\\*[\"'])", judges.value(names.PASSWORD),
        "ConvertTo-SecureString 'hunter2x' -AsPlainText", "ConvertTo-SecureString '$pass' -AsPlainText",
        "(?i:convertto-securestring) ",
    ),
    Context(
        r"(?:put-parameter|put-secret-value|create-secret|update-secret|secret set)[^\n|;]{0,300}? --(?:value|secret-string)[ =]([^\s$-])",
        judges.value(names.PASSWORD), "aws ssm put-parameter --name /app/key --value hunter2x", "aws ssm put-parameter --value $PASS",
        "(?:put-parameter|put-secret-value|create-secret|update-secret|secret set) ",
    ),
    Context(
        r"(?i:expect)[^\n]{0,60}(?i:assword|passphrase|passcode)[^\n]{0,40}\n\s{0,20}send(?: --)? {1,2}([\"'])",
        judges.sent, 'expect "Password:"\nsend "hunter2\\r"', 'expect "Password:"\nsend "$pass\\r"',
        r"(?i:expect)[ \\\"'\(]+[^\n]*(?i:assw|passp|passc)",
    ),
    Context(
        r"\bkind: ?\"?Secret\b", tables.manifest,
        "kind: Secret\nstringData:\n  value: hunter2", "kind: Secret\nmetadata:\n  name: demo", r"\bkind: ?\"?Secret\b",
    ),
    Context(
        r"(?i:insert) +(?i:(?:or \w+ )?into) +[\w.`\"\\\[\]]{1,80}", tables.inserted,
        "INSERT INTO users (name, password) VALUES ('a', 'hunter2')", "INSERT INTO users (name, password) VALUES ('a', ?)",
        r"(?i:insert) +(?i:(?:or \w+ )?into) ",
    ),
    Context(
        rf"[|,\t][ \t]*([\w.-]{{0,60}}(?i:{names.WORDS}))[ \t]*(?=[\r\n])", tables.last_column,
        "id | password\n---+------\n1 | hunter2", "id | password\n---+------\n1 | string",
        rf"[|,\t][ \t]*[\w.-]*(?i:{names.WORDS})[ \t]*[\r\n]",
    ),
    Context(
        r"-(?:pass|passin|passout) pass:([^\s$])", judges.value(names.PASSWORD),
        "openssl rsa -passin pass:hunter2 -in k", "openssl rsa -passin pass:$PASS -in k",
        "-(?:pass|passin|passout) pass:",
    ),
    Context(
        r"\b(?:echo|printf)(?: -n| -e|(?: \\*[\"'])?%s(?:\\n)?\\*[\"']?)? (\\*'[^\n]{2,300}?'|\\*\"[^\n]{2,300}?\"|[^\s|;&$\"'][^|;&\n$]{2,200}?) ?(?:\||>\() ?[^|\n]{0,200}?"
        r"(?:--password-stdin|sudo -S|chpasswd|passwd|gh secret set|docker login|gh auth login --with-token|cryptsetup|vault login|su -|su \w|sudo --stdin|kinit|docker secret create|passphrase-fd|secret-tool store|pass insert)",
        judges.piped, "echo hunter2 | docker login -u demo --password-stdin", "echo $PASS | sudo -S true",
        r"--password-stdin|sudo -S|chpasswd|\| *(?:sudo )?passwd|\| *(?:gh secret set|gh auth login|docker login|vault login|su |sudo --stdin|kinit|docker secret|secret-tool|pass insert)|passphrase-fd|cryptsetup", back=400,
    ),
    Context(
        r"(?:^|(?<=[\s\"'`]))[\w.*-]{1,80}:(?:\d{4,5}|\*):[\w.*-]{1,60}:[\w.*-]{1,60}:(\S)", judges.value(names.PASSWORD),
        "db.example.org:5432:shop:demo:hunter2", "db.example.org:5432:shop:demo:$PASS",
        r":(?:\d\d\d\d\d?|\*):[A-Za-z*][\w.*-]*:", back=80,
    ),
    Context(
        rf"(?<![\w-])--?([a-z-]{{0,40}}(?i:{names.WORDS})) {{1,2}}([^\s-]|-[^\s-]{{0,80}}\d)", assignments.option,
        "deploy --api-token 0a1b2c3d4e", "deploy --token-file path",
        rf"-[a-z-]*(?i:{names.WORDS}) ",
    ),
    Context(
        rf"form-data; name=\\*\"[\w.-]{{0,60}}(?i:(?:{names.WORDS})(?:{names.TAIL})?)\\*\"\r?\n(?:[ \t]*[\w-]{{1,40}}: [^\n]{{0,200}}\n)?[ \t]*\r?\n[ \t]*(\S)", judges.line,
        'form-data; name="password"\r\n\r\nhunter2', 'form-data; name="password"\r\n\r\n$PASS', "form-data; name=",
    ),
    Context(tables.NAMED, tables.find_pair, '{"value": "hunter2x", "name": "DB_PASSWORD"}', '{"value": "", "name": "DB_PASSWORD"}', tables.SIGN),
    Context(tables.PRINTED, tables.printed, "$ printenv DB_PASSWORD\nhunter2x", "$ printenv DB_PASSWORD\n$", tables.PRINTS),
    Context(
        r"(?:`([^`\n]{4,100})`|\"([^\"\n]{4,100})\"|'([^'\n]{4,100})') as (?:the |my |your |its |an? )?(?:[a-z]{1,20} ){0,2}(?i:password|passphrase|passcode|api key|token|secret)\b",
        judges.called_so, "use `hunter2x` as the admin password", "use `getpass` as the password prompt",
        "[`\"'] as [a-z ]*(?i:password|passphrase|passcode|api key|token|secret)", back=200,
    ),
    Context(
        r"type=\\{0,3}[\"']?password\b[^<>\n]{0,200}?\bvalue=(\\{0,3}[\"'])", judges.argument,
        '<input type="password" value="hunter2x">', '<input type="password" value="">', r"type=\\*[\"']?password",
    ),
    *COMMANDS,
    *sentences.CONTEXTS,
)  # fmt: skip
