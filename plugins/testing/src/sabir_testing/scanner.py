"""What a maintained scanner finds in a text: Yelp's detect-secrets, with its own patterns and its own filters.

Of its detectors two kinds stay out: of random texts, which `leaks` measures where none belong, and of public addresses.
"""

from functools import lru_cache

DETECTORS = (
    *("ArtifactoryDetector", "AWSKeyDetector", "AzureStorageKeyDetector", "BasicAuthDetector", "CloudantDetector"),
    *("DiscordBotTokenDetector", "GitHubTokenDetector", "GitLabTokenDetector", "IbmCloudIamDetector"),
    *("IbmCosHmacDetector", "JwtTokenDetector", "KeywordDetector", "MailchimpDetector", "NpmDetector"),
    *("OpenAIDetector", "PrivateKeyDetector", "PypiTokenDetector", "SendGridDetector", "SlackDetector"),
    *("SoftlayerDetector", "SquareOAuthDetector", "StripeDetector", "TelegramBotTokenDetector", "TwilioKeyDetector"),
)
"""The scanner's names of what it looks for."""


@lru_cache(maxsize=4096)
def scanned(text: str) -> tuple[tuple[str, str], ...]:
    """What the scanner finds in each line: its word for the kind, and the secret."""
    from detect_secrets.core.scan import scan_line  # half a second of imports, for those who look for leaks
    from detect_secrets.settings import transient_settings

    with transient_settings({"plugins_used": [{"name": name} for name in DETECTORS]}):
        found = {each for line in text.splitlines() for each in scan_line(line)}
    return tuple(sorted((each.type, each.secret_value or "") for each in found))
