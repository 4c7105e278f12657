"""Every setting, taken from the environment; without one, the product runs on this machine alone.

Naming the hosts (STEADYHAND_HOSTS) makes it a deployment: https, strict cookies, secrets that must exist.
"""

import os
from pathlib import Path
from typing import Any

from csp.constants import NONCE, NONE, SELF

from console import logs
from console.embedded import addresses, places, secrets
from console.embedded.errors import Trouble


def _names(variable: str) -> list[str]:
    return [name.strip() for name in os.environ.get(variable, "").split(",") if name.strip()]


BASE = Path(__file__).resolve().parent.parent
PLACES = places.at(os.environ, default=BASE / "var")
STEADYHAND_HOME = PLACES.home

# Loopback: plain http, this machine's own names only. Anything reachable by others is named, and then strict.
HOSTS = _names("STEADYHAND_HOSTS")
LOOPBACK = os.environ.get("STEADYHAND_LOOPBACK", "" if HOSTS else "1") == "1"
if LOOPBACK and HOSTS:
    raise Trouble("STEADYHAND_LOOPBACK=1 serves this machine only: unset it, or unset STEADYHAND_HOSTS.")
if not LOOPBACK and not HOSTS:
    raise Trouble("STEADYHAND_HOSTS is empty: name the host people will type, for example console.example.org.")

DEBUG = False
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]"] if LOOPBACK else HOSTS
CSRF_TRUSTED_ORIGINS = [f"https://{host}" for host in HOSTS]
ROOT_URLCONF = "console.urls"
WSGI_APPLICATION = "console.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_USER_MODEL = "runs.Person"

# Exact host:port pairs that connectors may reach although they are loopback or plain http: demo and tests only.
TRUSTED_ENDPOINTS = _names("TRUSTED_ENDPOINTS")

_secrets = secrets.load(home=PLACES.home, environ=os.environ, generate=LOOPBACK)
SECRET_KEY = _secrets.secret_key
SEALING_KEYS = _secrets.sealing_keys
TOKEN_PEPPER = _secrets.token_pepper

# --- database -----------------------------------------------------------------------------------------------
# `default` signs in as the restricted role; `owner` exists for `migrate --database=owner` and nothing else.
_DATABASE_URL = os.environ.get("DATABASE_URL", "")
_OWNER_URL = os.environ.get("DATABASE_OWNER_URL", "")
EMBEDDED_DATABASE = not _DATABASE_URL
# Threads of one web process share connections; elsewhere one process needs one, and forks must not inherit any.
_POOL = {"min_size": 1, "max_size": 8, "timeout": 5} if os.environ.get("STEADYHAND_POOL") == "1" else None

DATABASES: dict[str, dict[str, Any]] = {
    "default": addresses.database(
        _DATABASE_URL or PLACES.database_url(places.APP_ROLE), variable="DATABASE_URL", pool=_POOL
    )
}
if _POOL is None:
    # A worker keeps its connection from one message to the next, and asks once for each whether it still lives.
    DATABASES["default"] |= {"CONN_MAX_AGE": 60, "CONN_HEALTH_CHECKS": True}
if EMBEDDED_DATABASE or _OWNER_URL:
    DATABASES["owner"] = addresses.database(
        _OWNER_URL or PLACES.database_url(places.OWNER_ROLE), variable="DATABASE_OWNER_URL"
    )

# Limits and counters that every process must agree on; the table comes with console's migrations.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "console_cache",
        "OPTIONS": {"MAX_ENTRIES": 50_000},
    }
}

# --- background work ----------------------------------------------------------------------------------------
EMBEDDED_BROKER = not os.environ.get("CELERY_BROKER_URL")
CELERY_BROKER_URL = os.environ.get("CELERY_BROKER_URL") or PLACES.broker_url

# --- applications -------------------------------------------------------------------------------------------
INSTALLED_APPS = [
    "runs",
    "recovery",
    "console",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.usersessions",
    "guardian",
    "django_htmx",
    "csp",
    "lucide",
    "ninja",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "console.headers.Headers",
    "console.api.edge.Edge",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "allauth.usersessions.middleware.UserSessionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "csp.context_processors.nonce",
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "console.embedded.mail.for_pages",
            ]
        },
    }
]

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "/static/"
STATIC_ROOT = PLACES.static
STATICFILES_DIRS = [BASE / "static"]
WHITENOISE_USE_FINDERS = LOOPBACK
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if LOOPBACK
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}

# --- sign-in ------------------------------------------------------------------------------------------------
AUTHENTICATION_BACKENDS = [
    "allauth.account.auth_backends.AuthenticationBackend",
    "guardian.backends.ObjectPermissionBackend",
]
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.ScryptPasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
PASSWORD_RESET_TIMEOUT = 30 * 60

ACCOUNT_ADAPTER = "console.accounts.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*", "password2*"]
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_EMAIL_SUBJECT_PREFIX = ""
ACCOUNT_PREVENT_ENUMERATION = True
ACCOUNT_SESSION_REMEMBER = False
ACCOUNT_REAUTHENTICATION_TIMEOUT = 5 * 60
ACCOUNT_DEFAULT_HTTP_PROTOCOL = "http" if LOOPBACK else "https"

MFA_ADAPTER = "console.accounts.MFAAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_TOTP_ISSUER = "Steadyhand"
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = LOOPBACK

ANONYMOUS_USER_NAME = None
GUARDIAN_MONKEY_PATCH_USER = False
GUARDIAN_MONKEY_PATCH_GROUP = False

# Without a host of its own to send through, an installation prints its mail where it runs.
EMAIL_HOST = os.environ.get("STEADYHAND_MAIL_HOST", "")
SENDS_MAIL = bool(EMAIL_HOST)
EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend" if SENDS_MAIL else "console.embedded.mail.TerminalMail"
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = os.environ.get("STEADYHAND_MAIL_FROM", "steadyhand@localhost")

# --- cookies and headers (SEC-04, SEC-11 to SEC-13) ---------------------------------------------------------
_prefix = "" if LOOPBACK else "__Host-"
SESSION_COOKIE_NAME = f"{_prefix}steadyhand_session"
SESSION_COOKIE_AGE = 12 * 60 * 60
SESSION_COOKIE_SECURE = not LOOPBACK
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_EXPIRE_AT_BROWSER_CLOSE = True
SESSION_IDLE_SECONDS = 30 * 60
CSRF_COOKIE_NAME = f"{_prefix}steadyhand_csrf"
CSRF_COOKIE_SECURE = not LOOPBACK
CSRF_COOKIE_HTTPONLY = True
CSRF_COOKIE_SAMESITE = "Lax"
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"

SECURE_SSL_REDIRECT = not LOOPBACK
SECURE_HSTS_SECONDS = 0 if LOOPBACK else 365 * 24 * 60 * 60
SECURE_HSTS_INCLUDE_SUBDOMAINS = not LOOPBACK
SECURE_HSTS_PRELOAD = not LOOPBACK
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
if os.environ.get("STEADYHAND_BEHIND_PROXY") == "1":
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
# Bodies are bounded (SEC-16); so is what Django reads into memory.
DATA_UPLOAD_MAX_MEMORY_SIZE = 256 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 500

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF, NONCE],
        "style-src": [SELF, NONCE],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "base-uri": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}

# --- logs ---------------------------------------------------------------------------------------------------
LOGGING_CONFIG = None
logs.configure(readable=LOOPBACK, level=os.environ.get("STEADYHAND_LOG_LEVEL", "INFO").upper())
