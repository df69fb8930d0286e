-- The orders of a sale in Vendure's database, for `caddy stockgate reconcile SALE --shop orders.csv`: name the
-- items of the sale in the last line, and write the file with psql --csv -f orders.sql.
SELECT o.code AS ref, v.sku, l.quantity
FROM "order" o
JOIN order_line l ON l."orderId" = o.id
JOIN product_variant v ON v.id = l."productVariantId"
WHERE o."orderPlacedAt" IS NOT NULL AND o.state <> 'Cancelled' AND v.sku IN ('SNK-1')
