# Builds the service, and runs it as nobody in particular on a root that may be read-only.
# docs/deployment.md tells how to use it, and what was tried: this version of Node, by hand, and no image of it.
# A tag can be moved; pin it to a digest of yours.

ARG NODE_IMAGE=node:24.21.0-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Without scripts: `prepare` would build, and the sources come only now, so that
# the packages are fetched anew only where the lockfile changes.
RUN npm ci --ignore-scripts
COPY . .
RUN npm run build
RUN npm prune --omit=dev --ignore-scripts
RUN find dist -name '*.map' -delete && mkdir data

FROM ${NODE_IMAGE} AS run
LABEL org.opencontainers.image.title="Latchkey" \
      org.opencontainers.image.description="Credential and session service" \
      org.opencontainers.image.licenses="Apache-2.0"
# Nothing here installs anything any more.
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack /opt/yarn*
WORKDIR /app
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY --from=build /app/package.json /app/LICENSE ./
COPY deploy/docker/healthcheck.mjs ./
# The one place that is written to, and that only by the embedded store. A volume takes its owner from here.
COPY --from=build --chown=10001:10001 /app/data /data
# No key in the log of a container: `bootstrap` makes the first one.
ENV NODE_ENV=production DATA_DIR=/data FIRST_KEY=hide
USER 10001:10001
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD ["node", "/app/healthcheck.mjs"]
ENTRYPOINT ["node", "/app/dist/src/main.js"]
CMD ["serve"]
