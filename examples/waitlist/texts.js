// All texts of the page. Another language is another object; words in braces are replaced.
// `refused` and `ended` are by the reasons of docs/refusals.md: for those that are missing, the page shows the
// sentence of the edge, which comes in the language that the browser asks for.
export const texts = {
  en: {
    title: 'Flash sale',
    quantity: 'Quantity',
    buy: 'Buy now',
    buyAgain: 'Try to buy again',
    enter: 'Join the waiting list',
    leave: 'Leave the waiting list',
    accept: 'Buy now',
    decline: 'I do not want it any more',
    again: 'Back',
    moment: 'One moment, please …',
    start: 'How many would you like?',
    held: 'All are in the carts of others at the moment. Some may come back: join the waiting list, and they are held for you when it is your turn.',
    waiting: 'You are on the waiting list.',
    place: 'Place {place}',
    about: 'Your turn comes in about {time}.',
    aboutUnknown: 'It is not known when your turn comes: nothing came back in the last minutes.',
    allSold: 'All are sold. You keep your place, in case one is returned.',
    waitPaused: 'The sale is paused. You keep your place.',
    mayClose: 'You may close this page and come back to it. No other person overtakes you.',
    offered: 'It is your turn: {quantity} held for you.',
    offeredTitle: 'Your turn!',
    left: '{time} left',
    until: 'Buy until {time}. After that, the next person gets it.',
    paused: 'The sale is paused. Your offer stays, and the pause does not count.',
    soon: 'Less than a minute left.',
    over: 'The time is up. One moment, please …',
    ordered: 'Ordered.',
    later: 'It is not known at the moment where you stand. You keep your place; the page asks again by itself.',
    offline: 'No connection. You keep your place; the page goes on by itself.',
    noAnswer: 'No answer. Look into your orders before you try again.',
    ended: {
      '': 'You are not on the waiting list any more.',
      accepted: 'Your offer was used for an order.',
      lapsed: 'Your offer is over. It went to the next person.',
      left: 'You have left the waiting list. Nothing was charged.',
      closed: 'The sale is closed.',
      limit_reached: 'You have bought as many as one person may.',
    },
    refused: {
      available: 'Some are free right now: buy.',
      two_entries: 'Two people on the list share what you entered. Nothing was changed.',
      list_full: 'The waiting list is full. Please try again later.',
      paused: 'The sale is paused. Please try again in a moment.',
      sold_out: 'Sold out.',
      limit_reached: 'You have bought as many as one person may.',
      unavailable: 'This is not possible at the moment. Please try again.',
    },
  },
  zh: {
    title: '限量发售',
    quantity: '数量',
    buy: '立即购买',
    buyAgain: '再次尝试购买',
    enter: '加入候补名单',
    leave: '退出候补名单',
    accept: '立即购买',
    decline: '我不想要了',
    again: '返回',
    moment: '请稍候……',
    start: '您想购买几件？',
    held: '商品目前都在其他买家的订单中，之后可能释放。加入候补名单，轮到您时会为您保留。',
    waiting: '您已在候补名单中。',
    place: '第 {place} 位',
    about: '预计约 {time} 后轮到您。',
    aboutUnknown: '最近几分钟没有商品释放，暂时无法预计何时轮到您。',
    allSold: '已全部售出。您的位置会保留，如有退货会为您保留。',
    waitPaused: '活动已暂停。您的位置会保留。',
    mayClose: '您可以关闭此页面，稍后再回来，不会有人插队。',
    offered: '轮到您了：已为您保留 {quantity} 件。',
    offeredTitle: '轮到您了！',
    left: '剩余 {time}',
    until: '请在 {time} 前购买，逾期将让给下一位。',
    paused: '活动已暂停。为您保留的商品不变，暂停时间不计入。',
    soon: '剩余不到一分钟。',
    over: '时间已到，请稍候……',
    ordered: '下单成功。',
    later: '暂时无法查询您的位置。您的位置会保留，页面将自动重试。',
    offline: '网络已断开。您的位置会保留，页面将自动恢复。',
    noAnswer: '没有收到答复。请先查看您的订单，再决定是否重试。',
    ended: {
      '': '您已不在候补名单中。',
      accepted: '为您保留的商品已下单。',
      lapsed: '保留时间已过，商品已让给下一位。',
      left: '您已退出候补名单，未产生任何费用。',
      closed: '活动已关闭。',
      limit_reached: '您已达到限购上限。',
    },
    refused: {
      available: '现在有货，请直接购买。',
      two_entries: '您填写的信息分属候补名单中的两位买家，未作任何更改。',
      list_full: '候补名单已满，请稍后再试。',
      paused: '活动已暂停，请稍候再试。',
      sold_out: '已售罄。',
      limit_reached: '您已达到限购上限。',
      unavailable: '暂时无法处理，请重试。',
    },
  },
}

// languageOf is the first language of the browser that there is; ?lang=zh in the address comes before.
export function languageOf(page = location, browser = navigator) {
  const wanted = [new URLSearchParams(page.search).get('lang'), ...browser.languages]
  for (const tag of wanted) {
    const language = tag?.toLowerCase().split('-')[0]
    if (Object.hasOwn(texts, language ?? '')) return language
  }
  return 'en'
}

// filled puts values into the braces of a text.
export const filled = (text, values = {}) => text.replace(/\{(\w+)\}/g, (_, name) => values[name])
