"""What the authors of provider plugins build with: readers, tables and drivers that every provider would write again.

    bodies      any bytes → JSON of a known shape        failures   an error table → the library's errors
    leaves      what calls, results and pieces share     stored     a stored request → DecodedHistory
    access      endpoint, key, the SDK's clients         vendor     vendor settings, and settings that a model refuses
    transport   ready bytes, sent under the head that an SDK writes once

Nothing else of core imports it; a plugin may take what it likes, or nothing.
"""
