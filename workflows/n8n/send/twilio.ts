import type { SourceNode } from '../document.ts'
import type { MapperTools } from '../mapper.ts'
import type { MappedNode } from '../parts.ts'
import { isTemplate, keepText, plainText, writeCode, writeLiteral } from '../texts.ts'
import { type MappedMessage, mapMessage, readOptionFields, refuseOperation } from './messenger.ts'

/** Twilio's node: messages by SMS or WhatsApp, and calls that say something. */
export function mapTwilio(node: SourceNode, tools: MapperTools): MappedNode {
  const { resource = 'sms', operation = resource === 'call' ? 'make' : 'send' } = node.parameters
  const name = `${resource}.${operation}`
  if (name === 'sms.send') return mapMessage(node, tools, 'twilioApi', readSms(node))
  if (name === 'call.make') return mapMessage(node, tools, 'twilioApi', readCall(node))
  return refuseOperation(String(resource), String(operation))
}

function readSms(node: SourceNode): MappedMessage {
  const { from, to, message, toWhatsapp } = node.parameters
  if (isTemplate(toWhatsapp)) throw new Error('an expression says whether it goes to WhatsApp')
  const mark = (number: unknown) => {
    const text = keepText(number)
    if (toWhatsapp !== true) return text
    return isTemplate(text) ? `=whatsapp:${text.slice(1)}` : `whatsapp:${text}`
  }
  const { statusCallback } = readOptionFields(node, 'options')
  return {
    config: {
      from: mark(from),
      to: mark(to),
      text: keepText(message),
      ...(statusCallback ? { options: { StatusCallback: keepText(statusCallback) } } : {}),
    },
  }
}

function readCall(node: SourceNode): MappedMessage {
  const { from, to, message, twiml } = node.parameters
  if (isTemplate(twiml)) throw new Error('an expression says whether its message is TwiML')
  const { statusCallback } = readOptionFields(node, 'options')
  const body = {
    From: keepText(from),
    To: keepText(to),
    Twiml: twiml === true ? keepText(message) : sayIt(message),
    ...(statusCallback ? { StatusCallback: keepText(statusCallback) } : {}),
  }
  return { config: { operation: 'call', method: 'POST Calls.json', body } }
}

const MARKS = [
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&quot;'],
  ["'", '&apos;'],
] as const

/** A text that the call says, as TwiML. */
function sayIt(message: unknown): string {
  if (!isTemplate(message)) {
    const text = MARKS.reduce((all, [mark, name]) => all.replaceAll(mark, name), plainText(message) ?? '')
    return writeLiteral(`<Response><Say>${text}</Say></Response>`)
  }
  const steps = MARKS.map((pair) => `.replaceAll(${pair.map((one) => JSON.stringify(one)).join(', ')})`)
  return `={{ '<Response><Say>' + String(${writeCode(message)})${steps.join('')} + '</Say></Response>' }}`
}
