import { isObject } from '../../workflows/json.ts'
import { invalidConfig } from '../nodes/kit/failure.ts'
import {
  type ChatLine,
  type ChatMessage,
  type ChatVendor,
  dropEmpty,
  isGet,
  readMethod,
  toFields,
  unreadable,
} from './vendor.ts'

const SID = /^[A-Za-z]{2}[0-9A-Fa-f]{32}$/
const isGone = (_: unknown, status: number) => status === 404

/**
 * https://www.twilio.com/docs/messaging/api/message-resource. A number with `whatsapp:` in front is one of WhatsApp,
 * and so is the other one then. Forms, not JSON.
 */
export const TWILIO: ChatVendor = {
  name: 'Twilio',
  baseUrl: 'https://api.twilio.com/2010-04-01',
  maxText: 1_600,
  maxCaption: 1_600,
  maxFiles: 0,
  formats: ['plain'],
  reserved: ['To', 'Body'],
  knownForMs: 0,
  reads: isGet,
  deeds: {
    send({ to = '', from, text, options }, line) {
      const onWhatsApp = [to, from].some((number) => number?.startsWith('whatsapp:'))
      const mark = (number: string | undefined) =>
        number === undefined || !onWhatsApp || number.startsWith('whatsapp:') ? number : `whatsapp:${number}`
      const service = from !== undefined && SID.test(from)
      const sender = service ? { MessagingServiceSid: from } : { From: mark(from) }
      return post(line, 'Messages.json', {
        ...options,
        ...dropEmpty({ To: mark(to), ...sender, Body: text }),
      })
    },
    async delete(message, line) {
      await line.begin()
      const path = pathOf(line, `Messages/${idOf(message)}.json`)
      const { body } = await line.post({ path, verb: 'DELETE' }, undefined, isGone)
      return { messageId: message.message ?? null, to: message.to ?? null, response: body || null }
    },
    async call({ method, body, named }, line) {
      const { verb, path } = readMethod(method, 'Twilio')
      if (Object.keys(named).length > 0) throw invalidConfig('files', 'must not be there: Twilio takes none')
      await line.begin()
      const form = new URLSearchParams(toFields(body))
      const sent = verb === 'GET' || form.size === 0 ? undefined : { form }
      const { body: response } = await line.post({ path: pathOf(line, path), verb }, sent)
      const { sid } = Object(response)
      return { messageId: typeof sid === 'string' ? sid : null, to: null, response }
    },
  },
}

function idOf({ message = '' }: ChatMessage): string {
  if (!SID.test(message)) throw invalidConfig('message', 'must be the SID of a message')
  return message
}

const pathOf = ({ credential }: ChatLine, path: string) =>
  `Accounts/${encodeURIComponent(String(credential.data.accountSid))}/${path}`

async function post(line: ChatLine, path: string, fields: object) {
  await line.begin()
  const form = new URLSearchParams(toFields(fields))
  const { body } = await line.post({ path: pathOf(line, path) }, { form })
  if (!isObject(body) || typeof body.sid !== 'string') throw unreadable('Twilio')
  return { messageId: body.sid, to: typeof body.to === 'string' ? body.to : null, response: body }
}
