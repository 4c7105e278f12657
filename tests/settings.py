"""The product's settings in a throwaway home, with what makes tests slow turned down."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path


def _forget(home: str, maker: int) -> None:
    if os.getpid() == maker:
        shutil.rmtree(home, ignore_errors=True)


if "STEADYHAND_TEST_HOME" not in os.environ:
    os.environ["STEADYHAND_TEST_HOME"] = tempfile.mkdtemp(prefix="sh-test-")
    # Whoever made it removes it, at the very end: pytest may stop before any conftest is read.
    atexit.register(_forget, os.environ["STEADYHAND_TEST_HOME"], os.getpid())
# Never a real installation's: whatever the shell had set is replaced.
os.environ["STEADYHAND_HOME"] = os.environ["STEADYHAND_TEST_HOME"]
os.environ["STEADYHAND_LOOPBACK"] = "1"
for name in ("STEADYHAND_HOSTS", "STEADYHAND_POOL"):
    os.environ.pop(name, None)
if "STEADYHAND_TEST_CHILD" not in os.environ:
    for name in ("DATABASE_URL", "DATABASE_OWNER_URL", "CELERY_BROKER_URL", "TRUSTED_ENDPOINTS"):
        os.environ.pop(name, None)

from console.settings import *  # noqa: E402, F403

HOME = Path(os.environ["STEADYHAND_TEST_HOME"])
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", "testserver"]
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
