// A Medusa server as npm installs it, without its admin pages. See shop for the environment.
const { defineConfig } = require('@medusajs/framework/utils');

module.exports = defineConfig({
  projectConfig: {
    databaseUrl: process.env.DATABASE_URL,
    http: {
      storeCors: 'http://localhost:8000',
      adminCors: 'http://localhost:9000',
      authCors: 'http://localhost:8000',
      jwtSecret: process.env.SECRET ?? 'an example',
      cookieSecret: process.env.SECRET ?? 'an example',
    },
  },
  admin: { disable: true },
});
