"""The base of the cases: the suite, its subject, its recordings, and the reports of faults.

Here: the names of what a case notes with `record_property`. Nothing else is loaded until a suite is.
"""

SUITE_PROPERTY = "sabir.suite"
CAPABILITY_PROPERTY = "sabir.capability"
"""Which grade of a capability was seen."""
HANDED_OVER = "sabir.handed_over"
"""To which installed dialects the author's replies were handed over."""
WARNED_PROPERTY = "sabir.warned"
"""What is wrong, by a case that is new in this release and fails from the next one on."""
