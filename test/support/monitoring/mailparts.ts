import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'

/** A mail as Python's email package reads it. A picture's bytes are in base64. */
export type ParsedMail = {
  headers: Record<string, string[]>
  structure: string
  parts: {
    type: string
    disposition: string | null
    cid: string | null
    filename: string | null
    text: string | null
    base64: string
  }[]
  defects: string[]
}

const PROGRAM = `
import base64, email, email.policy, json, sys
mail = email.message_from_bytes(sys.stdin.buffer.read(), policy=email.policy.default)
def show(part):
    kind = part.get_content_type()
    return kind + ('(' + ','.join(show(one) for one in part.iter_parts()) + ')' if part.is_multipart() else '')
parts, defects = [], [str(one) for one in mail.defects]
for part in mail.walk():
    defects += [str(one) for one in part.defects]
    if part.is_multipart(): continue
    body = part.get_payload(decode=True)
    text = part.get_content() if part.get_content_maintype() == 'text' else None
    parts.append(dict(type=part.get_content_type(), disposition=part.get_content_disposition(), cid=part['Content-ID'],
        filename=part.get_filename(), text=text, base64=base64.b64encode(body).decode()))
headers = {name: mail.get_all(name) for name in mail.keys()}
print(json.dumps(dict(headers=headers, structure=show(mail), parts=parts, defects=defects)))
`

/** Reads a mail with a program that did not write it. */
export async function parseMail(raw: string): Promise<ParsedMail> {
  const child = spawn('python3', ['-c', PROGRAM], { stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.end(raw)
  return JSON.parse(await text(child.stdout))
}
