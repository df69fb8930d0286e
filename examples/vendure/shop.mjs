// A Vendure server as npm installs it: guest checkout, one shipping method, a dummy payment
// that settles at once, stock in PostgreSQL. Nothing in it knows Stockgate.
//
//   DATABASE_URL  an empty PostgreSQL database, or one that this program has filled
//   PORT          3000 by default, on HOST, 127.0.0.1 by default
//   STOCK         SKU=UNITS,…: the products of an empty database, SNK-1=20,CAP-1=100000 by default
//   COUPON        a code that takes 100 % off an order; none by default
//
// It prints "ready" on a line of its own when it serves. The password of superadmin is
// superadmin: this is an example.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import core from '@vendure/core';
import cli from '@vendure/core/cli/index.js';

const { bootstrap, DefaultLogger, dummyPaymentHandler, LanguageCode, LogLevel, Populator, ProductVariantService, PromotionService, RequestContextService } = core;

process.env.VENDURE_DISABLE_TELEMETRY = 'true';

const config = {
  apiOptions: { hostname: process.env.HOST ?? '127.0.0.1', port: Number(process.env.PORT ?? 3000), trustProxy: 1 },
  // a cookie for browsers, a bearer token for apps: a request may have both, and the recipe locks both
  authOptions: { tokenMethod: ['cookie', 'bearer'], cookieOptions: { secret: process.env.COOKIE_SECRET ?? 'an example' } },
  dbConnectionOptions: {
    type: 'postgres',
    url: process.env.DATABASE_URL,
    synchronize: true,
    logging: false,
    extra: { max: 20 },
  },
  importExportOptions: { importAssetsDir: tmpdir() },
  logger: new DefaultLogger({ level: LogLevel.Warn, timestamp: false }),
  paymentOptions: { paymentMethodHandlers: [dummyPaymentHandler] },
};

// What a new shop needs, as `@vendure/create` would import it.
const initialData = {
  defaultLanguage: LanguageCode.en,
  defaultZone: 'Europe',
  countries: [{ name: 'Germany', code: 'DE', zone: 'Europe' }],
  taxRates: [{ name: 'Standard', percentage: 0 }],
  shippingMethods: [{ name: 'Standard', price: 0 }],
  paymentMethods: [{
    name: 'dummy',
    handler: { code: dummyPaymentHandler.code, arguments: [{ name: 'automaticSettle', value: 'true' }] },
  }],
  collections: [],
};

async function seed(app) {
  await cli.populateInitialData(app, initialData);
  const rows = (process.env.STOCK ?? 'SNK-1=20,CAP-1=100000').split(',').map((item) => {
    const [sku, units] = item.split('=');
    return `${sku},${sku.toLowerCase()},,,,,,${sku},90,Standard,${units},true,,`;
  });
  const dir = await mkdtemp(join(tmpdir(), 'vendure-'));
  const file = join(dir, 'products.csv');
  await writeFile(file, ['name,slug,description,assets,facets,optionGroups,optionValues,sku,price,taxCategory,stockOnHand,trackInventory,variantAssets,variantFacets', ...rows].join('\n'));
  const imported = await cli.importProductsFromCsv(app, file, LanguageCode.en);
  await rm(dir, { recursive: true });
  if (imported.errors?.length || imported.imported !== rows.length) throw new Error(`the products: ${JSON.stringify(imported)}`);
  if (process.env.COUPON) {
    const ctx = await app.get(RequestContextService).create({ apiType: 'admin' });
    await app.get(PromotionService).createPromotion(ctx, {
      enabled: true,
      couponCode: process.env.COUPON,
      conditions: [],
      actions: [{ code: 'order_percentage_discount', arguments: [{ name: 'discount', value: '100' }] }],
      translations: [{ languageCode: LanguageCode.en, name: 'everything for nothing' }],
    });
  }
}

const app = await bootstrap(config);
const ctx = await app.get(RequestContextService).create({ apiType: 'admin' });
if ((await app.get(ProductVariantService).findAll(ctx, { take: 1 })).totalItems === 0) await seed(app);
console.log('ready');
