"""The cases of the conformance kit, by family."""
