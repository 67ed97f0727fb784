import type { NodeMapper } from '../mapper.ts'
import { mapDiscord } from './discord.ts'
import { mapMail } from './mail.ts'
import { mapMattermost } from './mattermost.ts'
import { mapSlack } from './slack.ts'
import { mapTelegram } from './telegram.ts'
import { mapTwilio } from './twilio.ts'
import { mapWhatsApp } from './whatsapp.ts'

/** Nodes that send messages to people. */
export const MESSAGE_MAPPERS: Record<string, NodeMapper> = {
  emailSend: mapMail,
  telegram: mapTelegram,
  slack: mapSlack,
  discord: mapDiscord,
  mattermost: mapMattermost,
  whatsApp: mapWhatsApp,
  twilio: mapTwilio,
}
