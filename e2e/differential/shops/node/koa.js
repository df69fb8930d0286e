// Koa with koa-bodyparser.
'use strict';
const Koa = require('koa');
const bodyParser = require('koa-bodyparser');
const { readings, port, json } = require('./read');

const app = new Koa();
app.on('error', () => {});
app.use(bodyParser({ enableTypes: ['json', 'form'], extendTypes: { json }, strict: false }));
app.use((ctx) => {
  const [, route, sku, quantity] = ctx.path.split('/');
  const cookies = {};
  for (const name of ['sku', 'quantity', 'user']) cookies[name] = ctx.cookies.get(name);
  const params = route === 'path' ? { sku: sku && decodeURIComponent(sku), quantity: quantity && decodeURIComponent(quantity) } : undefined;
  ctx.body = {
    method: ctx.method, path: ctx.path, token: ctx.get('stockgate-token'),
    readings: readings(ctx.query, ctx.request.body, cookies, (name) => ctx.get(name) || undefined, params),
  };
});
app.listen(port, '127.0.0.1');
