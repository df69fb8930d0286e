// Express 4 or 5 (argv[2]) with qs, cookie-parser and multer.
'use strict';
const express = require(process.argv[2]);
const cookieParser = require('cookie-parser');
const multer = require('multer');
const { readings, port, json } = require('./read');

const app = express();
app.set('query parser', 'extended');
app.use(cookieParser());
app.use(express.json({ type: json, strict: false }));
app.use(express.urlencoded({ extended: true }));
app.use(multer().any());

function answer(req, res) {
  res.json({
    method: req.method, path: req.path, token: req.get('stockgate-token') || '',
    readings: readings(req.query, req.body, req.cookies, (name) => req.get(name), req.params),
  });
}
app.all('/path/:sku/:quantity', answer);
app.use(answer);
app.use((err, req, res, next) => res.status(err.status || 400).json({ error: String(err.message) }));
app.listen(port, '127.0.0.1');
