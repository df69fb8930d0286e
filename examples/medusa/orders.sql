-- The orders of a sale in Medusa's database, for `caddy stockgate reconcile SALE --shop orders.csv`: name the
-- items of the sale in the last line, and write the file with psql --csv -f orders.sql.
SELECT c.cart_id AS ref, l.variant_sku AS sku, i.quantity
FROM order_cart c
JOIN "order" o ON o.id = c.order_id
JOIN order_item i ON i.order_id = o.id AND i.version = o.version
JOIN order_line_item l ON l.id = i.item_id
WHERE o.status <> 'canceled' AND o.deleted_at IS NULL AND i.deleted_at IS NULL AND l.variant_sku IN ('SNK-1')
