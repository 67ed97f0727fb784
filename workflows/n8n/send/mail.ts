import { type Fields, requireCredential } from '../ai/asking.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools } from '../mapper.ts'
import { sentFilesOf } from '../nodes/fileparts.ts'
import { type MappedNode, mapEach } from '../parts.ts'
import { reportMissingOption } from '../report.ts'
import { needCredential } from '../signins/asking.ts'
import { MESSENGERS } from '../signins/messengers.ts'
import { isTemplate, keepText } from '../texts.ts'
import { readOptionFields, refuseOperation, reportAttribution, reportErrors } from './messenger.ts'

/** The node that sends a mail by SMTP. */
export function mapMail(node: SourceNode, tools: MapperTools): MappedNode {
  const { parameters, version } = node
  const { operation = 'send', fromEmail, toEmail, subject } = parameters
  if (operation !== 'send') return refuseOperation('email', String(operation))
  const given = readOptionFields(node, 'options')
  const { appendAttribution, replyTo, attachments, fileAttachments, ...options } = given
  const lists =
    version < 2
      ? [{ names: parameters.attachments }]
      : [{ names: attachments, cid: true }, { names: fileAttachments }]
  const files = lists.filter(({ names }) => names !== undefined && names !== '')
  const { ccEmail, bccEmail, ...rest } = version < 2 ? { ...options, ...pickCopies(parameters) } : options
  for (const [name, value] of Object.entries(rest))
    if (value !== false) reportMissingOption(tools.report, `parameters.options.${name}`, value)
  if (appendAttribution ?? version >= 2.1) reportAttribution(tools, 'parameters.options.appendAttribution')
  const message =
    'The output is {messageId, accepted, rejected, response} here. n8n also puts out `envelope`, the size, and how long ' +
    'it took: check the nodes that read those.'
  tools.report('parameter', 'parameters', message, null)
  reportErrors(node, tools)
  const { signIn, uses } = MESSENGERS.smtp!
  const need = needCredential(node, tools, { ...signIn, type: 'smtp', uses })
  const hasCopies = Boolean(ccEmail || bccEmail)
  const config: Fields = {
    credentialId: requireCredential(node, tools, need),
    ...(fromEmail ? { from: keepText(fromEmail) } : {}),
    // Without any address it can be saved, and fails when it comes to it, as n8n's does.
    ...(toEmail || !hasCopies ? { to: toEmail ? keepText(toEmail) : '={{ "" }}' } : {}),
    ...(ccEmail ? { cc: keepText(ccEmail) } : {}),
    ...(bccEmail ? { bcc: keepText(bccEmail) } : {}),
    ...(replyTo ? { replyTo: keepText(replyTo) } : {}),
    subject: keepText(subject),
    ...readTexts(node),
    ...(files.length > 0 ? { attachments: sentFilesOf(files) } : {}),
  }
  return { ...mapEach('SEND_EMAIL', config), retry: { maxAttempts: 1 } }
}

const pickCopies = ({ ccEmail, bccEmail }: Fields): Fields => ({ ccEmail, bccEmail })

/** The text, the HTML, or both. */
function readTexts({ parameters, version }: SourceNode): Fields {
  const { emailFormat = version < 2 ? 'both' : version === 2 ? 'text' : 'html', text, html } = parameters
  if (isTemplate(emailFormat)) throw new Error('an expression says whether it is HTML')
  const hasHtml = emailFormat === 'html' || (emailFormat === 'both' && Boolean(html))
  const hasText = emailFormat === 'text' || (emailFormat === 'both' && (Boolean(text) || !hasHtml))
  return {
    ...(hasText ? { text: keepText(text) } : {}),
    ...(hasHtml ? { html: keepText(html) } : {}),
  }
}
