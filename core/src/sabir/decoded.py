"""A conversation that was stored in a vendor's shape, as sabir's own data.

stored request ──dialect.decode_history──▶ DecodedHistory ──render, to any dialect──▶ request
"""

from sabir.losses import Loss
from sabir.messages import Message
from sabir.models import Frozen
from sabir.options import Option
from sabir.settings import Settings


class DecodedHistory(Frozen):
    """What a request held: its conversation, what was offered, how the call was to be made, and for which model.

    The options have no function: a request does not say what runs. What has no place here is in `losses`, by its
    path in the request; what only the vendor reads is under its name in `settings.vendor`, or in
    `settings.extra_body`.
    """

    messages: tuple[Message, ...]
    options: tuple[Option, ...] = ()
    settings: Settings = Settings()
    model: str = ""
    losses: tuple[Loss, ...] = ()
