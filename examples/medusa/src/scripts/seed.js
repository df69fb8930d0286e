// Fills a new database: one region, one stock location with free shipping, the products of
// $STOCK (SKU=UNITS,…), a publishable key for storefronts and a secret key for the gate's
// questions, which it writes into the file $KEYS.
const { writeFile } = require('node:fs/promises');
const { ContainerRegistrationKeys, Modules } = require('@medusajs/framework/utils');
const flows = require('@medusajs/medusa/core-flows');

module.exports.default = async function seed({ container }) {
  if ((await container.resolve(Modules.PRODUCT).listProducts({}, { take: 1 })).length > 0) return;
  const run = async (flow, input) => (await flow(container).run({ input })).result;
  const link = container.resolve(ContainerRegistrationKeys.LINK);

  const [channel] = await run(flows.createSalesChannelsWorkflow, { salesChannelsData: [{ name: 'Web' }] });
  const [publishable, secret] = await run(flows.createApiKeysWorkflow, {
    api_keys: [
      { title: 'Storefront', type: 'publishable', created_by: '' },
      { title: 'Stockgate', type: 'secret', created_by: 'stockgate' },
    ],
  });
  await run(flows.linkSalesChannelsToApiKeyWorkflow, { id: publishable.id, add: [channel.id] });
  await run(flows.createRegionsWorkflow, {
    regions: [{ name: 'Europe', currency_code: 'eur', countries: ['de'], payment_providers: ['pp_system_default'] }],
  });
  await run(flows.createTaxRegionsWorkflow, [{ country_code: 'de', provider_id: 'tp_system' }]);

  const [location] = await run(flows.createStockLocationsWorkflow, {
    locations: [{ name: 'Warehouse', address: { address_1: 'Street 1', city: 'Berlin', country_code: 'de' } }],
  });
  const fulfillment = container.resolve(Modules.FULFILLMENT);
  const profile = (await fulfillment.listShippingProfiles({ type: 'default' }))[0]
    ?? (await run(flows.createShippingProfilesWorkflow, { data: [{ name: 'Default', type: 'default' }] }))[0];
  const set = await fulfillment.createFulfillmentSets({
    name: 'Delivery',
    type: 'shipping',
    service_zones: [{ name: 'Germany', geo_zones: [{ country_code: 'de', type: 'country' }] }],
  });
  const at = { [Modules.STOCK_LOCATION]: { stock_location_id: location.id } };
  await link.create({ ...at, [Modules.FULFILLMENT]: { fulfillment_provider_id: 'manual_manual' } });
  await link.create({ ...at, [Modules.FULFILLMENT]: { fulfillment_set_id: set.id } });
  await run(flows.createShippingOptionsWorkflow, [{
    name: 'Standard',
    price_type: 'flat',
    provider_id: 'manual_manual',
    service_zone_id: set.service_zones[0].id,
    shipping_profile_id: profile.id,
    type: { label: 'Standard', description: 'in some days', code: 'standard' },
    prices: [{ currency_code: 'eur', amount: 0 }],
    rules: [{ attribute: 'enabled_in_store', value: 'true', operator: 'eq' }, { attribute: 'is_return', value: 'false', operator: 'eq' }],
  }]);
  await run(flows.linkSalesChannelsToStockLocationWorkflow, { id: location.id, add: [channel.id] });

  const stock = Object.fromEntries((process.env.STOCK ?? 'SNK-1=20,CAP-1=100000').split(',').map((item) => item.split('=')));
  await run(flows.createProductsWorkflow, {
    products: Object.keys(stock).map((sku) => ({
      title: sku,
      handle: sku.toLowerCase(),
      status: 'published',
      shipping_profile_id: profile.id,
      sales_channels: [{ id: channel.id }],
      options: [{ title: 'Size', values: ['One'] }],
      variants: [{ title: 'One', sku, options: { Size: 'One' }, manage_inventory: true, prices: [{ currency_code: 'eur', amount: 90 }] }],
    })),
  });
  const items = await container.resolve(Modules.INVENTORY).listInventoryItems({});
  await run(flows.createInventoryLevelsWorkflow, {
    inventory_levels: items.map((item) => ({ location_id: location.id, inventory_item_id: item.id, stocked_quantity: Number(stock[item.sku]) })),
  });

  if (process.env.COUPON) {
    await run(flows.createPromotionsWorkflow, {
      promotionsData: [{
        code: process.env.COUPON,
        type: 'standard',
        status: 'active',
        application_method: { type: 'percentage', target_type: 'order', value: 100, currency_code: 'eur' },
      }],
    });
  }

  if (process.env.KEYS) await writeFile(process.env.KEYS, JSON.stringify({ publishable: publishable.token, secret: secret.token }));
};
