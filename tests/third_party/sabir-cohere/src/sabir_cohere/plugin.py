"""The entry point: Cohere."""

from sabir_cohere.provider import CohereProvider

cohere = CohereProvider()
