"""Every code that an error event of ours may say."""

from __future__ import annotations

ERROR_CODES = frozenset(
    (
        # of what was published
        *("ambiguous_seq", "bad_field", "bad_msgpack", "bad_name", "missing_field", "no_session"),
        *("nothing_to_do", "too_large", "bad_setting", "not_opened", "gap", "gap_skipped"),
        # of the services
        *("failed", "no_capacity", "overloaded", "server_full", "state_lost"),
        # of the way to the backend
        *("audio_torn", "audio_unannounced", "bad_json", "bad_message", "complete_unexpected"),
        *("frame_too_large", "no_audio", "sample_rate_differs", "start_unexpected", "stopped"),
        *("unknown_type", "upstream_forbidden", "upstream_lost", "upstream_no_credentials"),
        *("upstream_no_region", "upstream_refused", "upstream_rejected", "upstream_throttled"),
        *("upstream_timeout", "upstream_unavailable", "upstream_unreachable"),
        # of our inference container
        *("bad_voice", "busy", "draining", "engine_failed", "lang_mismatch", "loading"),
        *("pronunciation_failed", "synthesis_stuck", "unknown_voice", "unsupported_lang"),
        *("voice_damaged", "voices_mismatch"),
    )
)
"""What error events say; a backend may say anything, and a label must not."""
