"""What we change about allauth: nobody signs up by themselves, and second-factor secrets rest encrypted."""

from allauth.account.adapter import DefaultAccountAdapter
from allauth.mfa.adapter import DefaultMFAAdapter
from cryptography.fernet import Fernet, MultiFernet
from django.conf import settings
from django.http import HttpRequest


class AccountAdapter(DefaultAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Accounts are made by invitation and by admins only."""
        return False


class MFAAdapter(DefaultMFAAdapter):
    """Secrets and recovery seeds are sealed with the newest key, and opened with any (SEC-02, SEC-37)."""

    def encrypt(self, text: str) -> str:
        return _box().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        return _box().decrypt(encrypted_text.encode()).decode()


def _box() -> MultiFernet:
    return MultiFernet([Fernet(key) for key in settings.SEALING_KEYS])
