# The sample shop of cmd/shop. `scripts/image` builds this too.
FROM scratch
COPY shop /usr/bin/shop
USER 65532:65532
EXPOSE 9000
ENTRYPOINT ["/usr/bin/shop"]
