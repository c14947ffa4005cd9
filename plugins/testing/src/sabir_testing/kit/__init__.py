"""The base of the test cases: the suite, the adapter under test, its recordings, and the reports of failures.

This module has the names of the properties that a case records with `record_property`. The pytest plugin imports only
this module, so that the kit is not loaded unless a suite is.
"""

SUITE_PROPERTY = "sabir.suite"
CAPABILITY_PROPERTY = "sabir.capability"
"""A capability and the grade that a test saw."""
HANDED_OVER = "sabir.handed_over"
"""The names of the installed dialects to which a case handed over the recorded replies."""
WARNED_PROPERTY = "sabir.warned"
"""The message of a failed case that is new in this release. Such a failure is only a warning."""
GRADED_PROPERTY = "sabir.graded"
"""What a grade needs of a suite: the provider's name, the number of the kit's cases, and the examples of each law."""
