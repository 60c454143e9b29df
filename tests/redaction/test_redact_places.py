"""Secrets whose name does not stand right before them: pairs, calls, commands, sentences, listings."""

from __future__ import annotations

import random

import pytest
from tests.secrets_grid import leaks, secret

from sess_redaction.redactor import Redactor

SECRETS = (
    "Xk29vLqPz7RtW4mN8bYc",
    "Summer2024!",
    "correct-horse-42",
    "Tr0ub4dor&3",
    "qwzkvxjhplmtrgbn",
)


def clean(text: str) -> str:
    return Redactor(home=None)(text)


@pytest.mark.parametrize("made", SECRETS)
@pytest.mark.parametrize(
    "form",
    [
        # names
        "DB_PW={}", 'db_pw: "{}"', "LICENSE_KEY={}", 'licenseKey: "{}"', "FERNET_KEY='{}'", '{{"SecretString": "{}"}}',
        "DBPASS={}", "ROOTPW={}", "pass-word: {}", "Kennwort: {}", "пароль: {}", "密码：{}", "OPENAI_KEY={}", "ERLANG_COOKIE={}",
        "pw: {}", "Passwort: {}", "mot de passe : {}", "contraseña: {}", "creds: admin:{}",
        # the value before the name, or with another key
        '{{"value": "{}", "name": "DB_PASSWORD"}}', '{{"id": 4, "value": "{}", "type": "plain", "key": "API_TOKEN"}}',
        '[\n  {{\n    "value": "{}",\n    "name": "DB_PASSWORD"\n  }}\n]', "env:\n  - value: {}\n    name: DB_PASSWORD\n",
        'env:\n  - value: "{}"\n    name: DB_PASSWORD\n', '<add value="{}" key="clientSecret" />',
        "{{ value: '{}', name: 'DB_PASSWORD' }}", "env: [{{name: DB_PASSWORD, value: '{}'}}]", "- {{name: DB_PASSWORD, value: {}}}",
        '{{"ParameterKey": "dbPassword", "ParameterValue": "{}"}}', "<name>api_key</name><value>{}</value>",
        "<td>root password</td><td>{}</td>", "<th>api_key</th>\n<td>{}</td>", "<dt>Password</dt><dd>{}</dd>",
        'az keyvault secret set --vault-name kv --name db-password --value "{}"',
        # calls and operators
        'config.set("db", "password", "{}")', '{{ "apiKey", "{}" }},', 'buildConfigField("String", "API_KEY", "\\"{}\\"")',
        'ENV["DB_PASSWORD"] ||= "{}"', "process.env.API_KEY ?? '{}'", 'env::var("API_KEY").unwrap_or("{}".into())',
        'db_password <- "{}"', 'let(:api_key) {{ "{}" }}', "await page.fill('#password', '{}')",
        "page.getByLabel('Password').fill('{}')", "cy.get('#password').type('{}')", 'fill_in "Password", with: "{}"',
        'auth=("admin", "{}")', 'client.login("me", "{}")', 'req.SetBasicAuth("me", "{}")', '.basic_auth("u", Some("{}"))',
        'new NetworkCredential("me", "{}")', '.bearer_auth("{}")', "jwt.sign(payload, '{}')", 'SecretStr("{}")',
        "new PDO('mysql:host=h', 'root', '{}');", "mysqli_connect('h', 'root', '{}', 'db');",
        'DriverManager.getConnection(url, "root", "{}");',
        # commands
        "lftp -u 'me,{}' sftp://h", "http -a 'me:{}' api.example", "smbclient //h/s -U 'me%{}'", "twine upload -u u -p '{}' dist/*",
        "vault login '{}'", "useradd -p '{}' me", "cqlsh -u c -p '{}' host", "zip -P '{}' a.zip f",
        "rabbitmqctl add_user me '{}'", "mc alias set m http://h minioadmin '{}'", "sudo -S <<< '{}' apt update",
        "vercel env add API_KEY production <<< '{}'", "curl --oauth2-bearer '{}' https://h", "h:6379> AUTH '{}'",
        "sonar-scanner -Dsonar.login='{}'",
        # sentences
        "I set the password to {}", "change the API key from {} to something else", "use `{}` as the password",
        'use "{}" as the API key', "Password for admin: {}", "password is generated for root@localhost: {}",
        "Das Passwort ist {}", "Le mot de passe est {}", "$ printenv DB_PASSWORD\n{}\n$", "$ echo $DB_PASSWORD\n{}",
        '<input type="password" name="p" value="{}">',
        "The password you asked for: {}", "password changed to {}", "admin password - {}", "DB_PASSWORD has the value {}",
        "ssh-keygen -t ed25519 -N '{}' -f k", "cryptsetup open d x <<< '{}'", "dotnet user-secrets set 'ApiKey' '{}'", "ab -A 'me:{}' http://h/",
    ],
)  # fmt: skip
def test_what_a_name_means_by_its_place_is_masked(form, made):
    text = form.format(made)
    assert not leaks(clean(text), made), clean(text)


MARGINS = (
    ".env.production:{}", "-- {}", "2024-05-01T12:00:00.123Z app-1  | {}", "src/app/config.yml-12-{}",
    "a1b2c3d4 (Jane Doe 2024-05-01 12:00:00 +0200 3) {}", "^1b2c3d4 src/a.yml (J. Doe 2024-05-01 12:00:00 +0200  3) {}",
)  # fmt: skip


@pytest.mark.parametrize("margin", MARGINS)
@pytest.mark.parametrize(
    "form",
    [
        "env:\n  - name: DB_PASSWORD\n    value: {}\n  - name: B\n    value: c", "api_key: |\n  {}\nnext: 1",
        "name,password\nme,{}", "| user | password |\n|---|---|\n| admin | {} |", 'token = (\n    "{}"\n)',
        "kind: Secret\ndata:\n  x: {}", "<key>apiKey</key>\n<string>{}</string>", "NAME   VALUE\nDB_PASSWORD    {}\nPORT   1",
    ],
)  # fmt: skip
def test_what_stands_before_each_line_is_read_over(margin, form):
    made = secret(random.Random(form), alphabet="abcdefghkmnpqrstuvwxyzABCDEFGH23456789")
    text = "\n".join(margin.format(line) for line in form.format(made).split("\n"))
    assert not leaks(clean(text), made), clean(text)


@pytest.mark.parametrize(
    "harmless",
    [
        '{"value": "string", "name": "password"}', '{"value": "enabled", "name": "theme"}', "value: 12\nname: token_count",
        '("user", "password", "email")', "<td>password</td><td>string</td>", "<td>token</td><td>The token to use</td>",
        "use `getpass` as the password prompt", "from the token to the end", "pass the token to verify",
        'login("user", "home")', "jwt.encode(payload, key, 'HS256')", "vault login -method=oidc", "sudo -S apt update",
        "CACHE_KEY = 'users:v2'", "PUBLIC_KEY=/etc/ssl/a.pub", "SORT_KEYS=created_at_2", "COMPASS=north-west-12", "MAX_TOKENS=40960", "PRIMARY_KEY=id_1",
        "bearer: authentication", "token - the next word", "a password you choose: anything", "the token you get: see below", "/9j/" + "aB3d" * 20 + "/EAAB" + "cD4e" * 30, "PW = page_width", "The password for users: see below", "src/a.py:password = getpass()", "AUTH failed for user",
        '{"name": "tokenize", "value": "d41d8cd98f00b204e9800998ecf8427e"}', 'value = "abc123def"\nname = password_field',
    ],
)  # fmt: skip
def test_what_only_stands_near_such_a_name_stays(harmless):
    assert clean(harmless) == harmless


@pytest.mark.parametrize(
    "name", ["MAPS_KEY", "HOST_KEY", "JIRA_PAT", "API_KEYS", "bearer", "SESSION_KEY"]
)
def test_a_name_of_many_things_means_a_secret_if_its_value_is_random(name):
    assert "Xk29" not in clean(f"{name}=Xk29vLqPz7RtW4mN8bYc")
    assert "Xk29" not in clean(f'{{"value": "Xk29vLqPz7RtW4mN8bYc", "name": "{name}"}}')
    assert clean(f"{name}=app_settings_1") == f"{name}=app_settings_1"
