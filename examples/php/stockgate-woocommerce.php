<?php
/**
 * Plugin Name: Stockgate for WooCommerce
 * Description: Takes no order without a reservation token of Stockgate.
 * Requires PHP: 7.4
 *
 * Copy this file and StockgateToken.php into wp-content/plugins/stockgate, and write into wp-config.php:
 *
 *     define('STOCKGATE_JWKS_URL', 'https://shop.example.com/.well-known/jwks.json');
 *
 * Its filters: stockgate_options (of StockgateToken), stockgate_buyer (the buyer as the gate knows them), stockgate_line
 * (an item as the gate names it, here by its id; null: no sale has it). It covers the checkout page and the checkout
 * block. It does not cover "pay for order", nor orders of administrators and of the REST API with a key.
 */

defined('ABSPATH') || exit;
require_once __DIR__ . '/StockgateToken.php';

register_activation_hook(__FILE__, 'stockgate_install');
add_action('woocommerce_checkout_process', 'stockgate_checkout_page');
add_action('woocommerce_checkout_order_processed', 'stockgate_ordered');
add_action('woocommerce_store_api_checkout_update_order_from_request', 'stockgate_checkout_block', 10, 2);

/** The ids of tokens that came to this shop, each once. order_id 0: no order came of it, or not yet. */
function stockgate_install(): void
{
    global $wpdb;
    require_once ABSPATH . 'wp-admin/includes/upgrade.php';
    dbDelta("CREATE TABLE {$wpdb->prefix}stockgate_tokens (
        jti varchar(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        order_id bigint unsigned NOT NULL DEFAULT 0,
        PRIMARY KEY  (jti)
    ) ENGINE=InnoDB");
}

/** The checkout page, before its order is written. WooCommerce shows the message of an exception. */
function stockgate_checkout_page(): void
{
    $lines = [];
    foreach (WC()->cart->get_cart() as $item) {
        $lines[] = stockgate_line($item['data'], $item['quantity']);
    }
    [$reason, $jti] = stockgate_decide(array_filter($lines));
    if ($reason === 'known') {
        stockgate_answer_again($jti);
    }
    if ($reason !== 'ok') {
        throw new Exception(stockgate_message($reason));
    }
    $GLOBALS['stockgate_jti'] = $jti;
}

/** The order of the checkout page is written. */
function stockgate_ordered($order_id): void
{
    global $wpdb;
    if (isset($GLOBALS['stockgate_jti'])) {
        $wpdb->update("{$wpdb->prefix}stockgate_tokens", ['order_id' => $order_id], ['jti' => $GLOBALS['stockgate_jti']]);
    }
}

/** The checkout block, which has a draft of its order. PATCH only changes the draft. */
function stockgate_checkout_block($order, $request): void
{
    global $wpdb;
    if ($request->get_method() !== 'POST') {
        return;
    }
    $lines = [];
    foreach ($order->get_items() as $item) {
        $lines[] = stockgate_line($item->get_product(), $item->get_quantity());
    }
    [$reason, $jti] = stockgate_decide(array_filter($lines));
    if ($reason === 'known') {
        stockgate_answer_again($jti);
    }
    if ($reason !== 'ok') {
        $status = $reason === 'keys_unavailable' ? 503 : 403;
        throw new \Automattic\WooCommerce\StoreApi\Exceptions\RouteException("stockgate_$reason", stockgate_message($reason), $status);
    }
    $wpdb->update("{$wpdb->prefix}stockgate_tokens", ['order_id' => $order->get_id()], ['jti' => $jti]);
}

/** The gate reads the ids of products and variations from the cart. A part of a unit is no line that a token has. */
function stockgate_line($product, $quantity): ?array
{
    $whole = is_numeric($quantity) && (int) $quantity == $quantity;
    return apply_filters('stockgate_line', ['sku' => (string) $product->get_id(), 'qty' => $whole ? (int) $quantity : 0], $product, $quantity);
}

/** Returns [reason, jti]. "ok" takes the id of the token, so that no other request gets "ok" for it. */
function stockgate_decide(array $lines): array
{
    global $wpdb;
    if ($lines === []) { // ordinary goods, which the gate lets pass
        return ['ok', ''];
    }
    $verifier = new StockgateToken(apply_filters('stockgate_options', [
        'audience' => defined('STOCKGATE_AUDIENCE') ? STOCKGATE_AUDIENCE : 'order-backend',
        'jwks_url' => defined('STOCKGATE_JWKS_URL') ? STOCKGATE_JWKS_URL : null,
        'secret'   => defined('STOCKGATE_SECRET') ? STOCKGATE_SECRET : null,
        'cache'    => [
            static fn () => get_option('stockgate_keys', null),
            static fn ($state) => update_option('stockgate_keys', $state, false),
        ],
        'fetch'    => 'stockgate_fetch',
    ]));
    // Guests have no id that the gate knows too: true instead of "" accepts the token of any buyer.
    $buyer = apply_filters('stockgate_buyer', is_user_logged_in() ? (string) get_current_user_id() : '');
    $known = static fn ($jti) => $wpdb->get_var($wpdb->prepare("SELECT jti FROM {$wpdb->prefix}stockgate_tokens WHERE jti = %s", $jti)) !== null;
    $token = $_SERVER['HTTP_STOCKGATE_TOKEN'] ?? null;
    [$reason, $claims] = $verifier->verify($token, $buyer === true ? '' : $buyer, array_values($lines), $known, $buyer === true);
    $jti = $claims['jti'] ?? '';
    if ($reason === 'ok') {
        // Another request with this token may have come since: the primary key decides.
        $taken = $wpdb->query($wpdb->prepare("INSERT IGNORE INTO {$wpdb->prefix}stockgate_tokens (jti) VALUES (%s)", $jti));
        $reason = $taken === 1 ? 'ok' : ($taken === 0 ? 'known' : 'not_recorded');
    }
    return [$reason, $jti];
}

/** WordPress's own client for StockgateToken. */
function stockgate_fetch(string $url): ?string
{
    $answer = wp_remote_get($url, ['timeout' => 5, 'redirection' => 0, 'limit_response_size' => (256 << 10) + 1]);
    return !is_wp_error($answer) && wp_remote_retrieve_response_code($answer) === 200 ? wp_remote_retrieve_body($answer) : null;
}

/**
 * A request that comes again gets the answer of the first one: its order. Without an order, which the first request may
 * still write, it gets 503, so that the gate does not take it for a refusal.
 */
function stockgate_answer_again(string $jti): void
{
    global $wpdb;
    $id = (int) $wpdb->get_var($wpdb->prepare("SELECT order_id FROM {$wpdb->prefix}stockgate_tokens WHERE jti = %s", $jti));
    $order = $id > 0 ? wc_get_order($id) : false;
    if (!$order) {
        wp_send_json(['message' => stockgate_message('known')], 503);
        return;
    }
    $url = $order->needs_payment() ? $order->get_checkout_payment_url() : $order->get_checkout_order_received_url();
    wp_send_json([
        'result' => 'success', 'redirect' => $url, // for the checkout page, and for the block:
        'order_id' => $id, 'order_key' => $order->get_order_key(), 'status' => $order->get_status(),
        'payment_result' => ['payment_status' => 'success', 'payment_details' => [], 'redirect_url' => $url],
    ]);
}

function stockgate_message(string $reason): string
{
    error_log("stockgate: an order is refused: $reason");
    return in_array($reason, ['keys_unavailable', 'not_recorded', 'known', 'expired'], true)
        ? 'The order could not be taken. Please try again.'
        : 'The items of this order are not reserved. Please go back to the shop and order again.';
}
