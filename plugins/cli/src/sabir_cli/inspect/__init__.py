"""`sabir inspect`: a read-only web page of one conversation and of its renderings for several models.

    file, store or recording ──loading──▶ Inspection ──cache_proof, redaction──▶ Inspection
                                               │
              ┌────────────────────────────────┴────────────────────────────┐
              ▼ cards                                                       ▼ alignment, renderings
        MessageCard … ──conversation_page──▶ HTML ◀──renderings_page── ComparisonRow …
                                               │
                          page: styles, script and policy around both
                                               ▼
                        --html FILE  ·  server: 127.0.0.1, a token in the URL

Only `loading` reads files and only `server` listens. All other modules are functions without I/O, which build HTML from
`elements`: the functions of this module escape every text.
"""
