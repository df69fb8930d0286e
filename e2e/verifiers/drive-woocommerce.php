<?php
// Verifies what the test says, a JSON line each, with examples/php/stockgate-woocommerce.php: by the hook of the checkout
// page and by the hook of the checkout block, which must agree. WordPress is not here; the functions below stand for what
// the plugin calls of it. What differs is written to stderr, which fails the test.

namespace Automattic\WooCommerce\StoreApi\Exceptions {
    class RouteException extends \Exception
    {
        public string $reason;
        public int $status;

        public function __construct(string $reason, string $message, int $status)
        {
            parent::__construct($message);
            $this->reason = $reason;
            $this->status = $status;
        }
    }
}

namespace {
    use Automattic\WooCommerce\StoreApi\Exceptions\RouteException;

    define('ABSPATH', '/');
    ini_set('error_log', '/dev/null');
    [$hooks, $options, $step, $sent, $status, $unpaid] = [[], [], [], null, 0, false];

    final class Sent extends Exception
    {
    }

    // The table of tokens, as jti => order_id.
    final class Database
    {
        public string $prefix = 'wp_';
        public ?array $rows = [];
        public bool $late = false; // another request takes the id between the question and the insert

        public function prepare(string $sql, string $jti): array
        {
            return [$sql, $jti];
        }

        public function get_var(array $query): ?string
        {
            [$sql, $jti] = $query;
            if (!isset($this->rows[$jti])) {
                return null;
            }
            return strpos($sql, 'SELECT order_id') === 0 ? (string) $this->rows[$jti] : $jti;
        }

        public function query(array $query)
        {
            if ($this->rows === null) {
                return false;
            }
            if ($this->late || isset($this->rows[$query[1]])) {
                $this->rows[$query[1]] ??= 0;
                return 0;
            }
            $this->rows[$query[1]] = 0;
            return 1;
        }

        public function update(string $table, array $set, array $where): void
        {
            if (isset($this->rows[$where['jti']])) {
                $this->rows[$where['jti']] = $set['order_id'];
            }
        }
    }

    // A cart, an item of it, its product, the order and the request.
    final class Thing
    {
        private array $values;

        public function __construct(array $values)
        {
            $this->values = $values;
        }

        public function __call(string $name, array $arguments)
        {
            return $this->values[$name];
        }

        public function __get(string $name)
        {
            return $this->values[$name];
        }
    }

    function register_activation_hook($file, $function): void
    {
        is_callable($function) || fwrite(STDERR, "no function $function\n");
    }

    function add_action(string $hook, string $function, int $priority = 10, int $arguments = 1): void
    {
        global $hooks;
        $hooks[$hook] = [$function, $arguments];
    }

    function do_action(string $hook, ...$values): void
    {
        global $hooks;
        [$function, $arguments] = $hooks[$hook];
        $function(...array_slice($values, 0, $arguments));
    }

    function apply_filters(string $filter, $value, ...$more)
    {
        global $step;
        if ($filter === 'stockgate_options') {
            return array_merge($value, [
                'audience' => $step['audience'], 'issuer' => $step['issuer'], 'jwks_url' => $step['url'], 'secret' => $step['secret'],
                'leeway' => $step['leeway_ms'] / 1000, 'now' => fn () => $step['now_ms'] / 1000,
            ]);
        }
        if ($filter === 'stockgate_buyer') {
            return $step['subject'] === '' && $step['any_subject'] ? true : $step['subject'];
        }
        return $more[0]->get_id() === 'ordinary' ? null : $value + ['region' => $more[0]->region];
    }

    function get_option(string $name, $default)
    {
        global $options;
        return $options[$name] ?? $default;
    }

    function update_option(string $name, $value, bool $autoload): void
    {
        global $options;
        $options[$name] = $value;
    }

    function is_user_logged_in(): bool
    {
        return false;
    }

    function wp_remote_get(string $url, array $options): array
    {
        $context = stream_context_create(['http' => ['timeout' => $options['timeout'], 'follow_location' => $options['redirection'] ?? 5, 'ignore_errors' => true]]);
        $stream = fopen($url, 'rb', false, $context);
        $code = (int) explode(' ', stream_get_meta_data($stream)['wrapper_data'][0])[1];
        return [$code, stream_get_contents($stream, $options['limit_response_size'])];
    }

    function is_wp_error($answer): bool
    {
        return !is_array($answer);
    }

    function wp_remote_retrieve_response_code(array $answer): int
    {
        return $answer[0];
    }

    function wp_remote_retrieve_body(array $answer): string
    {
        return $answer[1];
    }

    function wp_send_json(array $answer, int $status = 200): void
    {
        global $sent;
        $sent = $answer + ['http' => $status];
        throw new Sent();
    }

    function wc_get_order(int $id): Thing
    {
        return order([], $id);
    }

    function WC(): Thing
    {
        global $step;
        $items = array_map(fn ($item) => ['data' => $item->get_product(), 'quantity' => $item->get_quantity()], items($step['lines']));
        return new Thing(['cart' => new Thing(['get_cart' => $items])]);
    }

    function order(array $lines, int $id = 7): Thing
    {
        return new Thing([
            'get_items' => items($lines), 'get_id' => $id, 'needs_payment' => $GLOBALS['unpaid'], 'get_checkout_payment_url' => "/pay/$id",
            'get_checkout_order_received_url' => "/received/$id",
            'get_order_key' => 'key', 'get_status' => 'processing',
        ]);
    }

    function items(array $lines): array
    {
        return array_map(fn ($line) => new Thing([
            'get_product' => new Thing(['get_id' => $line['sku'], 'region' => $line['region'] ?? '']), 'get_quantity' => $line['qty'],
        ]), $lines);
    }

    /** A hook says: ok, known, the reason of a refusal of the block, "refused" of the page. */
    function said(string $hook, ...$values): string
    {
        global $sent, $status;
        $sent = null;
        try {
            do_action($hook, ...$values);
        } catch (Sent $answer) {
            return 'known';
        } catch (RouteException $refused) {
            $status = $refused->status;
            return substr($refused->reason, strlen('stockgate_'));
        } catch (InvalidArgumentException $wrong) {
            return 'options';
        } catch (Exception $refused) {
            return 'refused';
        }
        return 'ok';
    }

    function page(): string
    {
        return said('woocommerce_checkout_process');
    }

    function block(string $method = 'POST'): string
    {
        global $step;
        return said('woocommerce_store_api_checkout_update_order_from_request', order($step['lines']), new Thing(['get_method' => $method]));
    }

    function must(bool $good, string $what): void
    {
        $good || fwrite(STDERR, "$what\n");
    }

    require __DIR__ . '/../../examples/php/stockgate-woocommerce.php';
    $wpdb = new Database();
    while (($line = fgets(STDIN)) !== false) {
        $step = json_decode($line, true);
        $options = $step['first'] ? [] : $options;
        $_SERVER['HTTP_STOCKGATE_TOKEN'] = $step['token'];
        $step['lines'] = $step['lines'] ?: [['sku' => 'not in the token', 'qty' => 1]]; // a cart is never empty
        $seen = array_fill_keys($step['known'] ?? [], 0);
        $wpdb->rows = $seen;
        $reason = page();
        if ($reason === 'ok') {
            must(page() === 'known' && $sent['http'] === 503, 'the page again, before there is an order');
            do_action('woocommerce_checkout_order_processed', 8, [], null);
            must(page() === 'known' && $sent['http'] === 200 && $sent['result'] === 'success' && $sent['redirect'] === '/received/8', 'the page again');
            $unpaid = true;
            must(block() === 'known' && $sent['order_id'] === 8 && $sent['redirect'] === '/pay/8', 'its token at the block, to be paid');
            $unpaid = false;
        }
        $wpdb->rows = $seen;
        $second = block();
        must($reason === $second || $reason === 'refused' && !in_array($second, ['ok', 'known'], true), "the page says $reason, the block $second");
        must(in_array($second, ['ok', 'known', 'options'], true) || $status === ($second === 'keys_unavailable' ? 503 : 403), "status $status of $second");
        if ($second === 'ok') {
            must(strlen(array_key_last($wpdb->rows)) === 36, 'the id of the token');
            must(block() === 'known' && $sent['payment_result']['redirect_url'] === '/received/7', 'the block again');
            $wpdb->rows = null;
            must(block() === 'not_recorded' && page() === 'refused', 'a table that is not there');
            $wpdb->rows = [];
            $wpdb->late = true;
            must(block() === 'known' && page() === 'known', 'a token that comes twice at the same time');
            $wpdb->late = false;
            $wpdb->rows = [];
            $step['lines'][0]['qty'] += 0.5;
            must(block() === 'lines' && page() === 'refused', 'half a unit more');
            $step['lines'][0]['qty'] -= 0.5;
        }
        must(block('PATCH') === 'ok' && $wpdb->rows === ($second === 'ok' ? [] : $seen), 'a change of the draft');
        $lines = $step['lines'];
        $step['lines'] = [['sku' => 'ordinary', 'qty' => 1]];
        must(page() === 'ok' && block() === 'ok', 'ordinary goods');
        $step['lines'] = $lines;
        echo json_encode(['reason' => $second, 'id' => '']), "\n";
    }
}
