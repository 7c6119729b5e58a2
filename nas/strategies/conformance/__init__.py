"""The laws that every search strategy holds, tried on a tiny space; `nas.testing` is their door."""
