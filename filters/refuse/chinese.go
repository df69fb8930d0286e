package refuse

import "github.com/stockgate/stockgate/internal/sale"

// chinese has the sentences for buyers in Chinese, in simplified characters.
var chinese = map[sale.Reason]string{
	sale.Malformed:      "请求内容有误，无法识别。",
	sale.Quantity:       "购买数量不在允许范围内，请调整后再试。",
	sale.BodyTooLarge:   "提交的内容过大。",
	sale.NoBuyer:        "请先登录再购买。",
	sale.Denied:         "抱歉，本次购买未被受理。",
	sale.NotEligible:    "本次活动仅限会员参加。",
	sale.Challenge:      "请先完成验证，再重新提交。",
	sale.LimitReached:   "您已达到限购上限。",
	sale.TooManyUnpaid:  "您未付款的订单过多，请先付款或稍后再试。",
	sale.UnknownItem:    "该商品未参加本次活动。",
	sale.UnknownSale:    "该活动不存在。",
	sale.UnknownRegion:  "该商品不在此地区销售。",
	sale.ClosedDoor:     "此下单入口已关闭。",
	sale.NotStarted:     "活动尚未开始，请稍后再来。",
	sale.PausedSale:     "活动已暂停，请稍候。",
	sale.SoldOut:        "已售罄。",
	sale.AllHeld:        "商品暂已抢完，如有订单未完成，库存可能释放，请稍后再试。",
	sale.NoCart:         "购物车是空的。",
	sale.CartChanged:    "排队期间购物车有变动，本次未下单。",
	sale.Duplicate:      "该订单正在处理中，请勿重复提交。",
	sale.Pending:        "您有另一笔订单正在处理中，请稍候。",
	sale.InDoubt:        "暂时无法确认本次购买是否成功，请稍候。",
	sale.AlreadyOrdered: "该订单已提交，无需重复下单。",
	sale.Ended:          "活动已结束。",
	sale.ClosedSale:     "活动已关闭。",
	sale.KeyReused:      "该请求标识已用于另一笔订单。",
	sale.TooEarly:       "请求提交过早，请重试。",
	sale.RateLimited:    "操作过于频繁，请稍后再试。",
	sale.Busy:           "当前下单人数过多，请稍后再试。",
	sale.NotSent:        "商家未能及时处理该订单，本次未下单。",
	sale.Unavailable:    "暂时无法下单，请稍后再试。",
}
