# Builds the service and runs it as an unprivileged user. The root file system can be read-only.
# docs/guides/deploy.md describes how to use it and how it was tested.
# Tags can be moved: pin a digest.

ARG NODE_IMAGE=node:26.13.0-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Without scripts: `prepare` would build before the sources are copied. Copying them later lets
# Docker cache the packages until the lockfile changes.
RUN npm ci --ignore-scripts
COPY . .
RUN npm run build
RUN npm prune --omit=dev --ignore-scripts
RUN find dist -name '*.map' -delete && mkdir data

FROM ${NODE_IMAGE} AS run
LABEL org.opencontainers.image.title="Latchkey" \
      org.opencontainers.image.description="Credential and session service" \
      org.opencontainers.image.licenses="Apache-2.0"
# The service needs no package manager.
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack /opt/yarn*
WORKDIR /app
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY --from=build /app/package.json /app/LICENSE ./
COPY deploy/docker/healthcheck.mjs ./
# Only the embedded store writes here. A new volume takes its owner from this folder.
COPY --from=build --chown=10001:10001 /app/data /data
# No key in the container log: create the first one with `bootstrap`.
ENV NODE_ENV=production DATA_DIR=/data FIRST_KEY=hide
USER 10001:10001
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD ["node", "/app/healthcheck.mjs"]
ENTRYPOINT ["node", "/app/dist/src/main.js"]
CMD ["serve"]
