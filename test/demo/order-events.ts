/** What the shop says: payloads with the things that real ones have (names with accents, decimals, nulls, nesting). */
export const ORDERS_TOPIC = 'shop.orders';
export const PAYMENTS_TOPIC = 'shop.payments';
export const ORDERS = 50;

export interface OrderEvent {
  readonly topic: string;
  readonly type: string;
  /** Null: a tombstone. */
  readonly payload: string | null;
}

const CUSTOMERS = ['Zoë Müller', 'Łukasz Nowak', 'Amélie “Mél” Durand', '山田 花子', 'Nia O’Connor', 'José 🌵 Ruiz'];
const STEPS = ['OrderPlaced', 'OrderPicked', 'OrderPacked', 'OrderShipped', 'OrderDelivered'];
/** So often an order is wiped on the customer's wish, and begins anew. */
const WIPED_EVERY = 97;
const PAID_EVERY = 4;

/** The events of one transaction on one order. `turn` counts all transactions. */
export function eventsOf(order: number, turn: number): OrderEvent[] {
  if (turn % WIPED_EVERY === 0) return [{ topic: ORDERS_TOPIC, type: 'OrderWiped', payload: null }];
  const lines = Array.from({ length: 1 + (turn % 3) }, (_, i) => ({
    sku: `SKU-${(turn * 31 + i) % 400}`,
    quantity: 1 + (turn % 5),
    price: ((turn * 37) % 20_000) / 100,
  }));
  const changed = {
    order,
    turn,
    customer: { name: CUSTOMERS[turn % CUSTOMERS.length], since: 2010 + (turn % 15), newsletter: turn % 2 === 0 },
    total: Math.round(lines.reduce((sum, { quantity, price }) => sum + quantity * price, 0) * 100) / 100,
    lines,
    coupon: turn % 7 === 0 ? 'SPRING\\24 "10 %"' : null,
  };
  const events = [{ topic: ORDERS_TOPIC, type: STEPS[turn % STEPS.length], payload: JSON.stringify(changed) }];
  if (turn % PAID_EVERY === 0) {
    const paid = { order, turn, amount: changed.total, currency: 'EUR', card: { last4: String(1000 + (turn % 9000)) } };
    events.push({ topic: PAYMENTS_TOPIC, type: 'PaymentReceived', payload: JSON.stringify(paid) });
  }
  return events;
}
