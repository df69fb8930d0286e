// What every shop here has in common: how a value is told to the harness, and what a
// program makes of what its framework has read.
'use strict';

// value writes what a program got: s: a string, n: a number, x: anything else.
function value(v) {
  if (v === undefined || v === null) return null;
  if (typeof v === 'string') return 's:' + v;
  if (typeof v === 'number') return 'n:' + v;
  return 'x:' + typeof v;
}

// casts are what programs make of a SKU that their database has as a number.
function casts(sku) {
  const n = Number(sku), f = parseFloat(sku);
  return [n, f, parseInt(sku, 10), parseInt(sku), sku * 1, ~~sku, sku | 0, sku >>> 0,
    Math.round(f), Math.ceil(f), Math.trunc(f)].map(String);
}

// reading is what a program finds where its framework puts the parameters.
function reading(how, from, got) {
  if (got === undefined || got === null || typeof got !== 'object') return { how, from };
  const r = { how, from, sku: value(got.sku), quantity: value(got.quantity), user: value(got.user) };
  if (got.sku !== undefined && got.sku !== null) r.casts = casts(got.sku);
  const items = got.order && got.order.items;
  if (Array.isArray(items)) {
    r.lines = items.map((l) => (l ? [value(l.sku), value(l.count)] : [null, null]));
  } else if (items !== undefined && items !== null) {
    r.lines = [['x:' + typeof items, null]];
  }
  if (r.lines === undefined) r.lines = formLines(got);
  return r;
}

// formLines are the lines in arrays of a form, as programs walk them.
function formLines(got) {
  const { items, qty, skus, counts } = got;
  if (items !== undefined) {
    if (items === null || typeof items !== 'object') return [['x:' + typeof items, null]];
    return Object.values(items).map((l) => (l && typeof l === 'object' ? [value(l.sku), value(l.count)] : ['x:' + typeof l, null]));
  }
  if (qty !== undefined) {
    if (qty === null || typeof qty !== 'object') return [['x:' + typeof qty, null]];
    return Object.entries(qty).map(([sku, n]) => [value(sku), value(n)]);
  }
  if (skus === undefined) return undefined;
  const all = (list) => (list && typeof list === 'object' ? Object.values(list) : [list]);
  return all(skus).map((sku, i) => [value(sku), counts === undefined ? null : value(all(counts)[i])]);
}

// merge copies as naive helpers do: it follows every name that it is given. What it would
// do to every object of the process it does to a prototype of this one.
function merge(into, from, depth) {
  for (const name of Object.keys(from || {})) {
    const v = from[name];
    if (v && typeof v === 'object' && into[name] && typeof into[name] === 'object' && depth < 8) merge(into[name], v, depth + 1);
    else if (name === '__proto__' || v === undefined) Object.assign(into, { ['__proto__']: v });
    else into[name] = v;
  }
  return into;
}

function readings(query, body, cookies, header, params) {
  const isObject = body && typeof body === 'object';
  return [
    reading('query', 'query', query),
    reading('body', 'body', body),
    reading('Object.assign({}, body)', 'body', isObject ? Object.assign({}, body) : undefined),
    reading('a copy of body, member by member', 'body', isObject ? merge(Object.create({}), body, 0) : undefined),
    reading('{...query, ...body}', 'merged', { ...query, ...(isObject ? body : {}) }),
    reading('{...body, ...query}', 'merged', { ...(isObject ? body : {}), ...query }),
    reading('Object.assign({}, query, body)', 'merged', Object.assign({}, query, isObject ? body : {})),
    reading('Object.assign({}, params, body, query)', 'merged', Object.assign({}, isObject ? body : {}, query)),
    reading('cookies', 'cookie', cookies),
    reading('headers', 'header', { sku: header('x-sku'), quantity: header('x-quantity'), user: header('x-user-id') }),
    reading('route', 'path', params),
  ];
}

module.exports = {
  readings,
  port: Number(process.env.PORT),
  // json is what a shop takes for JSON that is lenient about types.
  json: ['application/json', 'application/*+json', 'text/json', 'text/plain'],
};
