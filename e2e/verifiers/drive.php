<?php
// Verifies what the test says, a JSON line each, with examples/php/StockgateToken.php. Each step has a verifier of its
// own, as each request in PHP has; only the file of keys in the directory of the first argument stays.
require __DIR__ . '/../../examples/php/StockgateToken.php';

$file = $argv[1] . '/jwks.json';
while (($line = fgets(STDIN)) !== false) {
    $step = json_decode($line, true);
    if ($step['first'] && is_file($file)) {
        unlink($file);
    }
    try {
        $verifier = new StockgateToken([
            'audience' => $step['audience'], 'issuer' => $step['issuer'], 'jwks_url' => $step['url'], 'secret' => $step['secret'],
            'leeway' => $step['leeway_ms'] / 1000, 'cache' => StockgateToken::file($file), 'now' => fn () => $step['now_ms'] / 1000,
        ]);
    } catch (InvalidArgumentException $wrong) {
        echo '{"reason":"options"}', "\n";
        continue;
    }
    $known = $step['known'] === null ? null : fn ($jti) => in_array($jti, $step['known'], true);
    [$reason, $claims] = $verifier->verify($step['token'], $step['subject'], $step['lines'], $known, $step['any_subject']);
    echo json_encode(['reason' => $reason, 'id' => $claims['jti'] ?? '']), "\n";
}
