"""Every code that an error of ours may say, by where it is told."""

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

SYNTHESIS_CODES = frozenset(
    (
        *("bad_field", "bad_json", "bad_lexicon", "bad_message", "bad_utf8", "bad_voice", "busy"),
        *("draining", "empty_text", "encoder_closed", "engine_failed", "frame_too_large"),
        *("id_in_use", "lang_mismatch", "loading", "missing_package", "pronunciation_failed"),
        *("synthesis_stuck", "text_too_long", "unknown_type", "unknown_voice"),
        *("unsupported_format", "unsupported_lang", "unsupported_transport", "voice_damaged"),
        "voices_mismatch",
    )
)
"""What our inference container answers instead of audio."""

REFUSAL_CODES = ERROR_CODES | {
    # of the request
    *("bad_field", "bad_frame", "bad_id", "bad_json", "bad_method", "bad_name", "bad_protocol"),
    *("bad_text", "bad_type", "missing_package", "missing_text", "model_not_found"),
    *("no_such_path", "too_large", "turn_taken", "unsupported_format"),
    # of who asks
    *("bad_host", "bad_origin", "quota", "too_many_sessions", "unauthorized"),
    # of the session, the server and what became of the speech
    *("abandoned", "busy", "cancelled", "closed", "failed", "gap", "no_receipt", "no_speech"),
    *("partitions_differ", "refused", "session_closed", "state_lost", "too_much", "turn_over"),
    "unreachable",
}
"""What the agent answers instead of what was asked for; on a request that waits for its speech also
what error events say."""
