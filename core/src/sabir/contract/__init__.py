"""The interfaces that a provider's plugin implements, and the types that its functions get and return."""
