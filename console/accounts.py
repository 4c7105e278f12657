"""What we change about allauth: nobody signs up by themselves, and second-factor secrets rest encrypted."""

from typing import Any, cast

from allauth.account.adapter import DefaultAccountAdapter
from allauth.mfa.adapter import DefaultMFAAdapter
from cryptography.fernet import Fernet, MultiFernet
from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.http import HttpRequest, HttpResponse

from console import signins
from runs.models import Person


class AccountAdapter(DefaultAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Accounts are made by invitation and by admins only."""
        return False

    def post_login(self, request: HttpRequest, user: AbstractBaseUser, **more: Any) -> HttpResponse:
        """Every sign-in is recorded, by whichever way it came."""
        signins.succeeded(request, cast(Person, user))
        response: HttpResponse = super().post_login(request, user, **more)
        return response

    def authentication_failed(self, request: HttpRequest, **credentials: Any) -> None:
        """Asked by allauth within its own limits on how often somebody may fail."""
        signins.failed(request, str(credentials.get("email") or ""))


class MFAAdapter(DefaultMFAAdapter):
    """Secrets and recovery seeds are sealed with the newest key, and opened with any (SEC-02, SEC-37)."""

    def encrypt(self, text: str) -> str:
        return _box().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        return _box().decrypt(encrypted_text.encode()).decode()


def _box() -> MultiFernet:
    return MultiFernet([Fernet(key) for key in settings.SEALING_KEYS])
