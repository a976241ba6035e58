"""Which authorities a program believes, where a network has one of its own.

Without these, behind a proxy that looks into what passes, a program reaches nothing.
"""

from __future__ import annotations

#: Variables that name files of certificates; they hold no secret.
CERTIFICATES = frozenset({"NODE_EXTRA_CA_CERTS", "SSL_CERT_DIR", "SSL_CERT_FILE"})
