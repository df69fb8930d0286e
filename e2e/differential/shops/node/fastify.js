// Fastify with its plugins for forms, multipart and cookies.
'use strict';
const { readings, port } = require('./read');
const app = require('fastify')({ ignoreTrailingSlash: true });

app.register(require('@fastify/cookie'));
app.register(require('@fastify/formbody'));
app.register(require('@fastify/multipart'), { attachFieldsToBody: 'keyValues' });
// A shop that takes JSON of any type.
app.addContentTypeParser(/^(text\/(plain|json)|application\/[^;]+\+json)/, { parseAs: 'string' }, (req, body, done) => {
  try {
    done(null, JSON.parse(body));
  } catch (err) {
    err.statusCode = 400;
    done(err);
  }
});

async function answer(req) {
  return {
    method: req.method, path: req.url.split('?')[0], token: req.headers['stockgate-token'] || '',
    readings: readings(req.query, req.body, req.cookies, (name) => req.headers[name], req.params),
  };
}
app.all('/path/:sku/:quantity', answer);
app.all('/*', answer);
app.listen({ port, host: '127.0.0.1' });
