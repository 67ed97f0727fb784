import { HttpError } from '../http/httperror.ts'
import { requestFailure } from '../nodes/http.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'

const EXCERPT = 300

/** A fault of a certificate stays until the server or its settings are changed. */
const CERTIFICATE = /certificate|altname|self.signed|issuer/i

/** The codes of nodemailer for what a server never answered. */
const UNANSWERED = new Set(['ECONNECTION', 'ESOCKET', 'ETIMEDOUT', 'EPROTOCOL', 'EDNS', 'EMAXLIMIT'])

/**
 * The failure of a node for an error of an SMTP session. Retried: what the server says with 4xx, and connections that
 * cannot be made or end (SmtpNetwork). Final: what it says with 5xx (SmtpRefused), a sign-in that it refuses (SmtpAuth),
 * and TLS that it has not or whose certificate does not fit (SmtpTls). Other errors are returned as they are.
 */
export function smtpFailure(host: string, error: unknown): unknown {
  if (error instanceof HttpError) return requestFailure('SMTP', error)
  const { code, responseCode, response, message } = error as {
    code?: unknown
    responseCode?: number
    response?: string
    message?: string
  }
  if (!(error instanceof Error) || error instanceof NodeFailure || typeof code !== 'string') return error
  const isLater = responseCode !== undefined && responseCode >= 400 && responseCode < 500
  const said = tidy(response ?? message ?? '')
  if (code === 'EAUTH')
    return new NodeFailure(`${host} refused the sign-in: ${said}`, { type: 'SmtpAuth', retryable: isLater })
  if (code === 'ETLS' || (code === 'ESOCKET' && CERTIFICATE.test(said))) {
    const why = responseCode ? `it offers no TLS: ${said}` : said
    const retryable = isLater || (responseCode === undefined && !CERTIFICATE.test(said))
    return new NodeFailure(`No TLS with ${host}: ${why}`, { type: 'SmtpTls', retryable })
  }
  if (responseCode)
    return new NodeFailure(`${host} refused the mail: ${said}`, { type: 'SmtpRefused', retryable: isLater })
  if (code === 'EENVELOPE' || code === 'EMESSAGE')
    return new NodeFailure(`The mail cannot be sent: ${said}`, { type: 'SmtpRefused' })
  if (!UNANSWERED.has(code)) return error
  return new NodeFailure(`${host}: ${said}`, { type: 'SmtpNetwork', retryable: true })
}

function tidy(text: string): string {
  const line = text.replace(/[\p{Cc}\p{Cs}\s]+/gu, ' ').trim()
  return line.length > EXCERPT ? `${line.slice(0, EXCERPT)}...` : line
}
