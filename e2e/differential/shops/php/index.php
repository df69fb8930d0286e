<?php
// PHP-FPM behind php_fastcgi: $_GET, $_POST, $_REQUEST, $_COOKIE, and a JSON body.

function value($v) {
    if ($v === null) return null;
    if (is_string($v)) return preg_match('//u', $v) ? 's:' . $v : 'x:not UTF-8';
    if (is_int($v)) return 'n:' . $v;
    if (is_float($v)) return 'n:' . number($v);
    return 'x:' . gettype($v);
}

// number is text of a number: JSON has none for INF.
function number($n) { return is_float($n) && !is_finite($n) ? (string)$n : json_encode($n); }

// casts are what programs make of a SKU that their database has as a number.
function casts($sku) {
    if (!is_string($sku) && !is_int($sku) && !is_float($sku)) return [];
    $casts = [(string)intval($sku), number(floatval($sku)), (string)intval($sku, 0), number(round(floatval($sku)))];
    if (is_numeric($sku)) $casts[] = number($sku + 0);
    if (($n = filter_var($sku, FILTER_VALIDATE_INT, FILTER_FLAG_ALLOW_OCTAL | FILTER_FLAG_ALLOW_HEX)) !== false) $casts[] = (string)$n;
    if (is_string($sku)) {
        foreach (['%d', '%i', '%f'] as $format) {
            $got = sscanf($sku, $format);
            if ($got && $got[0] !== null) $casts[] = number($got[0]);
        }
    }
    return $casts;
}

function reading($how, $from, $got) {
    if (!is_array($got)) return ['how' => $how, 'from' => $from];
    $r = ['how' => $how, 'from' => $from];
    foreach (['sku', 'quantity', 'user'] as $name) $r[$name] = value($got[$name] ?? null);
    if (isset($got['sku'])) $r['casts'] = casts($got['sku']);
    if (isset($got['order']['items'])) {
        $items = $got['order']['items'];
        $r['lines'] = is_array($items)
            ? array_map(fn ($l) => [value($l['sku'] ?? null), value($l['count'] ?? null)], array_values($items))
            : [['x:' . gettype($items), null]];
    }
    $r['lines'] ??= form_lines($got);
    return $r;
}

// form_lines are the lines in arrays of a form, as programs walk them.
function form_lines($got) {
    if (isset($got['items'])) {
        if (!is_array($got['items'])) return [['x:' . gettype($got['items']), null]];
        return array_map(fn ($l) => is_array($l) ? [value($l['sku'] ?? null), value($l['count'] ?? null)] : ['x:line', null], array_values($got['items']));
    }
    if (isset($got['qty'])) {
        if (!is_array($got['qty'])) return [['x:' . gettype($got['qty']), null]];
        return array_map(fn ($sku, $n) => [value($sku), value($n)], array_keys($got['qty']), array_values($got['qty']));
    }
    if (!isset($got['skus'])) return null;
    $skus = (array)$got['skus'];
    return array_map(fn ($sku, $i) => [value($sku), value(((array)($got['counts'] ?? []))[$i] ?? null)], array_values($skus), array_keys($skus));
}

$raw = file_get_contents('php://input');
$json = json_decode($raw, true);
$object = json_decode($raw);
$fromObject = is_object($object) ? ['sku' => $object->sku ?? null, 'quantity' => $object->quantity ?? null, 'user' => $object->user ?? null] : null;
$path = parse_url('http://h' . $_SERVER['REQUEST_URI'], PHP_URL_PATH);
$steps = explode('/', $path);
$typed = preg_match('#json|text/plain#i', $_SERVER['CONTENT_TYPE'] ?? '');
$readings = [
    reading('$_GET', 'query', $_GET),
    reading('$_POST', 'body', $_POST),
    reading('$_REQUEST', 'merged', $_REQUEST),
    reading('$_GET + $_POST', 'merged', $_GET + $_POST),
    reading('$_POST + $_GET', 'merged', $_POST + $_GET),
    reading('$_COOKIE', 'cookie', $_COOKIE),
    reading('$_SERVER', 'header', ['sku' => $_SERVER['HTTP_X_SKU'] ?? null, 'quantity' => $_SERVER['HTTP_X_QUANTITY'] ?? null, 'user' => $_SERVER['HTTP_X_USER_ID'] ?? null]),
];
if ($typed) { // a shop that takes JSON of any type
    $readings[] = reading('json_decode', 'body', $json);
    $readings[] = reading('json_decode into an object', 'body', $fromObject);
    $readings[] = reading('array_merge($_REQUEST, json_decode)', 'merged', array_merge($_REQUEST, is_array($json) ? $json : []));
}
if ($steps[1] === 'path') {
    $readings[] = reading('REQUEST_URI', 'path', ['sku' => rawurldecode($steps[2] ?? ''), 'quantity' => rawurldecode($steps[3] ?? '')]);
}
header('Content-Type: application/json');
echo json_encode([
    'method' => $_SERVER['REQUEST_METHOD'], 'path' => $path,
    'token' => $_SERVER['HTTP_STOCKGATE_TOKEN'] ?? '', 'readings' => $readings,
], JSON_INVALID_UTF8_SUBSTITUTE);
