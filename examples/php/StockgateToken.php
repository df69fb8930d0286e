<?php

/**
 * Verifies reservation tokens of Stockgate. Copy this file into your shop. It needs PHP 7.4 or newer on 64 bits, with
 * the extension sodium (for EdDSA) and, where the JWKS is fetched over https, openssl.
 *
 *     $verifier = new StockgateToken([
 *         'audience' => 'order-backend',
 *         'jwks_url' => 'https://shop.example.com/.well-known/jwks.json',
 *         'cache'    => StockgateToken::file('/var/lib/shop/stockgate.json'),
 *     ]);
 *     [$reason, $claims] = $verifier->verify($_SERVER['HTTP_STOCKGATE_TOKEN'] ?? null, $buyer, [['sku' => '7', 'qty' => 1]], $hasOrder);
 *
 * The reasons, and what the shop answers to each, are in docs/shop.md.
 */
final class StockgateToken
{
    private const MAX_SIZE = 4096; // of a token, in bytes
    private const MAX_SET = 256 << 10; // of a JWKS, in bytes
    private const MAX_UNITS = 1000000000000;
    private const MAX_DEPTH = 16; // of values that are not known
    private const FIRST_INTERVAL = 1; // of fetches while none has worked, in seconds
    private const INTERVAL = 10;
    private const MAX_AGE = 3600;

    private array $o;
    private ?string $secretKid = null;

    /**
     * audience is required, and jwks_url or secret (as in `key hmac`) or both. leeway is how many seconds after exp a
     * token still counts, 0 to 60; keep it below the margin of the edge (1 s).
     *
     * A PHP process lives for one request, so keys are kept outside: cache is a pair of functions, one that returns
     * the array that was saved last, or null, and one that saves. Who can write there decides which tokens are genuine.
     * fetch gets the URL and returns the JWKS, or null; now returns Unix seconds.
     */
    public function __construct(array $options)
    {
        $this->o = $options + [
            'audience' => '', 'issuer' => 'stockgate', 'jwks_url' => null, 'secret' => null, 'leeway' => 0, 'cache' => null,
            'fetch' => [self::class, 'fetch'], 'now' => static fn () => microtime(true),
        ];
        $url = $this->o['jwks_url'];
        $secret = $this->o['secret'];
        if ($this->o['audience'] === '' || $this->o['leeway'] < 0 || $this->o['leeway'] > 60 || PHP_INT_SIZE < 8 || $url === null && $secret === null) {
            throw new InvalidArgumentException('give an audience, jwks_url or secret, and a leeway of 0 to 60 seconds; PHP must have 64 bits');
        }
        if ($url !== null && (!preg_match('~^https?://~', $url) || $this->o['cache'] === null)) {
            throw new InvalidArgumentException('give a whole http or https URL, and a cache');
        }
        if ($url !== null && !function_exists('sodium_crypto_sign_verify_detached')) {
            throw new RuntimeException('PHP has no extension sodium, which EdDSA needs');
        }
        if ($secret !== null) {
            if (strlen($secret) < 32 || trim($secret) !== $secret) {
                throw new InvalidArgumentException('the secret has less than 32 bytes, or white space around it');
            }
            $this->secretKid = self::thumbprint('{"k":"' . self::encode($secret) . '","kty":"oct"}');
        }
    }

    /** A cache in a file, whose directory only the shop can write to. */
    public static function file(string $path): array
    {
        $load = static fn () => is_file($path) ? json_decode((string) file_get_contents($path), true) : null;
        $save = static function (array $state) use ($path): void {
            $part = tempnam(dirname($path), 'jwks');
            file_put_contents($part, json_encode($state));
            rename($part, $path); // at once, for processes that read
        };
        return [$load, $save];
    }

    /**
     * Returns [reason, claims]: "ok" and the claims, or why the shop must not sell. The token is the value of the header
     * Stockgate-Token. The lines are the order's, each with sku, qty and perhaps region; null is not compared.
     * $known gets a jti and reports whether the shop has answered it before.
     */
    public function verify(?string $token, ?string $subject, ?array $lines, ?callable $known = null, bool $anySubject = false): array
    {
        try {
            $claims = $this->genuine((string) $token);
        } catch (StockgateTokenRefused $refused) {
            return [$refused->getMessage(), null];
        }
        $subject = (string) $subject;
        if ($subject === '' && !$anySubject || $subject !== '' && $subject !== $claims['sub']) {
            return ['subject', $claims];
        }
        if ($lines !== null && !self::same($claims['lines'], $lines)) {
            return ['lines', $claims];
        }
        if ($known !== null && $known($claims['jti'])) {
            return ['known', $claims];
        }
        if (($this->o['now'])() - $this->o['leeway'] >= $claims['exp']) {
            return ['expired', $claims];
        }
        return ['ok', $claims];
    }

    private function genuine(string $token): array
    {
        self::must($token !== '', 'missing');
        self::must(strpos($token, ',') === false, 'repeated');
        $parts = strlen($token) <= self::MAX_SIZE ? explode('.', $token) : [];
        self::must(count($parts) === 3);
        [$header, $body, $signature] = array_map([self::class, 'decode'], $parts);
        $valid = $this->key(self::read($header));
        self::must($valid($parts[0] . '.' . $parts[1], $signature), 'signature');
        $claims = self::check(self::read($body));
        self::must($claims['iss'] === $this->o['issuer'], 'issuer');
        self::must($claims['aud'] === $this->o['audience'], 'audience');
        return $claims;
    }

    /** The function that checks signatures with the key that the header names. */
    private function key(array $header): callable
    {
        self::need($header, ['typ' => 'string', 'alg' => 'string', 'kid' => 'string']);
        self::must(!array_key_exists('crit', $header));
        self::must($header['typ'] === 'stockgate+jwt', 'type');
        self::must(in_array($header['alg'], ['EdDSA', 'HS256'], true), 'algorithm');
        // The algorithm belongs to the key, the token cannot choose it.
        if ($header['kid'] === $this->secretKid) {
            self::must($header['alg'] === 'HS256', 'algorithm');
            return fn ($message, $mac) => hash_equals(hash_hmac('sha256', $message, $this->o['secret'], true), $mac);
        }
        $public = $this->o['jwks_url'] === null ? null : $this->find($header['kid']);
        self::must($public !== null, 'unknown_key');
        self::must($header['alg'] === 'EdDSA', 'algorithm');
        return static fn ($message, $signature) => strlen($signature) === SODIUM_CRYPTO_SIGN_BYTES
            && sodium_crypto_sign_verify_detached($signature, $message, $public);
    }

    /**
     * The edge's public key: fetched when first needed, again for an unknown one and each hour, at a bounded rate.
     * They stay while the edge is away.
     */
    private function find(string $kid): ?string
    {
        [$load, $save] = $this->o['cache'];
        $kept = $load();
        $state = (is_array($kept) ? $kept : []) + ['set' => '', 'begun' => null, 'fetched' => null, 'failed' => false];
        $now = ($this->o['now'])();
        $found = self::publicKeys($state['set'])[$kid] ?? null;
        $old = $state['fetched'] === null || abs($now - $state['fetched']) >= self::MAX_AGE;
        $interval = $state['fetched'] === null ? self::FIRST_INTERVAL : self::INTERVAL;
        if (($found === null || $old) && ($state['begun'] === null || abs($now - $state['begun']) >= $interval)) {
            $state['begun'] = $now;
            $state['failed'] = true;
            $save($state); // other processes wait with theirs
            $set = ($this->o['fetch'])($this->o['jwks_url']);
            if ($set !== null && strlen($set) <= self::MAX_SET && self::publicKeys($set) !== []) {
                $state = ['set' => $set, 'begun' => $now, 'fetched' => $now, 'failed' => false];
                $save($state);
                $found = $found ?? self::publicKeys($set)[$kid] ?? null;
            }
        }
        self::must($found !== null || !$state['failed'], 'keys_unavailable');
        return $found;
    }

    /** The default of fetch. The URL decides which server is trusted, so no redirect is followed. */
    public static function fetch(string $url): ?string
    {
        $context = stream_context_create(['http' => ['timeout' => 5, 'follow_location' => 0, 'ignore_errors' => true]]);
        $answer = @fopen($url, 'rb', false, $context);
        if ($answer === false) {
            return null;
        }
        $status = explode(' ', (string) (stream_get_meta_data($answer)['wrapper_data'][0] ?? ''))[1] ?? '';
        $set = stream_get_contents($answer, self::MAX_SET + 1);
        fclose($answer);
        return $status === '200' && is_string($set) ? $set : null;
    }

    /** The Ed25519 keys of a JWKS, by thumbprint; all others are passed over, above all secrets. */
    private static function publicKeys(string $set): array
    {
        $jwks = json_decode($set, true);
        $found = [];
        foreach (is_array($jwks) && is_array($jwks['keys'] ?? null) ? $jwks['keys'] : [] as $jwk) {
            if (($jwk['kty'] ?? '') !== 'OKP' || ($jwk['crv'] ?? '') !== 'Ed25519' || !is_string($jwk['x'] ?? null)) {
                continue;
            }
            if (!in_array($jwk['use'] ?? '', ['', 'sig'], true) || !in_array($jwk['alg'] ?? '', ['', 'EdDSA'], true)) {
                continue;
            }
            $raw = self::bytes($jwk['x']);
            if ($raw !== null && strlen($raw) === SODIUM_CRYPTO_SIGN_PUBLICKEYBYTES) {
                $found[self::thumbprint('{"crv":"Ed25519","kty":"OKP","x":"' . $jwk['x'] . '"}')] = $raw;
            }
        }
        return $found;
    }

    /** RFC 7638: the kid of a key. */
    private static function thumbprint(string $members): string
    {
        return self::encode(hash('sha256', $members, true));
    }

    private static function encode(string $raw): string
    {
        return rtrim(strtr(base64_encode($raw), '+/', '-_'), '=');
    }

    private static function decode(string $part): string
    {
        $raw = self::bytes($part);
        self::must($raw !== null);
        return $raw;
    }

    /** base64url without padding, in the one spelling that the bytes have. */
    private static function bytes(string $part): ?string
    {
        $raw = base64_decode(strtr($part, '-_', '+/'), true);
        return is_string($raw) && self::encode($raw) === $part ? $raw : null;
    }

    private static function must(bool $good, string $reason = 'malformed'): void
    {
        if (!$good) {
            throw new StockgateTokenRefused($reason);
        }
    }

    private static function check(array $claims): array
    {
        $text = 'string';
        self::need($claims, [
            'iss' => $text, 'aud' => $text, 'sub' => $text, 'jti' => $text, 'iat' => 'integer', 'exp' => 'integer', 'ep' => 'integer',
            'sale' => $text, 'lines' => 'array',
        ], ['ref' => $text]);
        self::must($claims['sub'] !== '' && $claims['jti'] !== '' && $claims['sale'] !== '' && $claims['lines'] !== []);
        self::must($claims['iat'] >= 0 && $claims['exp'] > $claims['iat'] && $claims['ep'] >= 0);
        foreach ($claims['lines'] as $i => $line) {
            $line = (array) $line; // what is no object has no sku
            self::need($line, ['sku' => $text, 'qty' => 'integer'], ['region' => $text]);
            self::must($line['sku'] !== '' && $line['qty'] >= 1 && $line['qty'] <= self::MAX_UNITS);
            $claims['lines'][$i] = $line;
        }
        return $claims;
    }

    /** Members of these types; what else there is may nest MAX_DEPTH deep. */
    private static function need(array $members, array $required, array $optional = []): void
    {
        foreach ($required + $optional as $name => $type) {
            self::must(array_key_exists($name, $members) ? gettype($members[$name]) === $type : !isset($required[$name]));
        }
        foreach ($members as $name => $value) {
            self::must(($required[$name] ?? '') === 'array' || self::height($value) <= self::MAX_DEPTH);
        }
    }

    private static function height($value): int
    {
        $inner = is_array($value) || $value instanceof stdClass ? (array) $value : [];
        return 1 + ($inner === [] ? 0 : max(array_map([self::class, 'height'], $inner)));
    }

    /**
     * Whether the order takes exactly what is held: in any order, equal lines summed. Stock that is held without a
     * region answers for any region.
     */
    private static function same(array $held, array $order): bool
    {
        $cell = static fn ($sku, $region) => strlen($sku) . ':' . $sku . '@' . $region;
        $left = [];
        foreach ($held as $line) {
            $name = $cell($line['sku'], $line['region'] ?? '');
            $left[$name] = ($left[$name] ?? 0) + $line['qty'];
        }
        foreach ($order as $line) {
            $name = $cell((string) $line['sku'], $line['region'] ?? '');
            $name = isset($left[$name]) ? $name : $cell((string) $line['sku'], '');
            if (!is_int($line['qty']) || $line['qty'] < 1 || $line['qty'] > ($left[$name] ?? 0)) {
                return false;
            }
            $left[$name] -= $line['qty'];
        }
        return array_filter($left) === [];
    }

    /** An object of I-JSON (RFC 7493): every reader sees the same in it. json_decode would take the last of two members. */
    private static function read(string $json): array
    {
        $at = 0;
        $value = self::value($json, $at, 0);
        self::must(self::token($json, $at, '\z') !== null);
        return (array) $value; // what is no object has none of the members that are needed
    }

    /** What matches behind white space; null: nothing does. */
    private static function token(string $json, int &$at, string $pattern): ?string
    {
        if (preg_match("~\\G[ \\t\\r\\n]*+($pattern)~", $json, $match, 0, $at) !== 1) {
            return null;
        }
        $at += strlen($match[0]);
        return $match[1];
    }

    /** An object is a stdClass, a list an array, a whole number of 64 bits an int, any other a float. */
    private static function value(string $json, int &$at, int $depth)
    {
        self::must($depth < 64);
        if (self::token($json, $at, '\{') !== null) {
            return (object) self::members($json, $at, $depth);
        }
        if (self::token($json, $at, '\[') !== null) {
            $list = [];
            while (self::token($json, $at, '\]') === null) {
                self::must($list === [] || self::token($json, $at, ',') !== null);
                $list[] = self::value($json, $at, $depth + 1);
            }
            return $list;
        }
        $word = self::token($json, $at, 'true|false|null');
        if ($word !== null) {
            return ['true' => true, 'false' => false, 'null' => null][$word];
        }
        $number = self::token($json, $at, '-?+(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][-+]?+[0-9]++)?+');
        if ($number === null) {
            return self::text($json, $at);
        }
        return $number === '-0' ? 0 : ((string) (int) $number === $number ? (int) $number : 0.5);
    }

    private static function members(string $json, int &$at, int $depth): array
    {
        $members = [];
        while (self::token($json, $at, '\}') === null) {
            self::must($members === [] || self::token($json, $at, ',') !== null);
            $name = self::text($json, $at);
            self::must(self::token($json, $at, ':') !== null && !array_key_exists($name, $members));
            $members[$name] = self::value($json, $at, $depth + 1);
        }
        return $members;
    }

    private static function text(string $json, int &$at): string
    {
        $plain = '[^"\\\\]*+';
        $quoted = self::token($json, $at, '"' . $plain . '(?:\\\\(?:["\\\\/bfnrt]|u[0-9a-fA-F]{4})' . $plain . ')*+"');
        $text = $quoted === null ? null : json_decode($quoted); // null for half of a surrogate pair, controls, and what is not UTF-8
        self::must(is_string($text));
        return $text;
    }
}

/** Why a token is refused, within this file. */
final class StockgateTokenRefused extends Exception
{
}
