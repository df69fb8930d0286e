# Caddy with Stockgate and the redis-server of its `store`: no shell, no package manager, no other user.
# `scripts/image` makes the build context bin/image, a static binary among it, and builds this.
FROM scratch
# root/ belongs to root: usr/bin/caddy, usr/bin/redis-server with its libraries and licences,
# etc/ssl/certs/ca-certificates.crt, etc/caddy, tmp.
COPY root/ /
# owned/ belongs to the user of the process: data and config. A volume that is made for
# one of them takes the ownership over.
COPY --chown=65532:65532 owned/ /

ENV PATH=/usr/bin \
    XDG_DATA_HOME=/data \
    XDG_CONFIG_HOME=/config
VOLUME ["/data", "/config"]
WORKDIR /data
USER 65532:65532
EXPOSE 80 443 443/udp

HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["caddy", "stockgate", "health"]
CMD ["caddy", "run", "--config", "/etc/caddy/Caddyfile", "--adapter", "caddyfile"]
