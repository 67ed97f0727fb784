/** The uses of a credential, which decide the nodes that may take it. */
export const CREDENTIAL_USES = ['HTTP', 'LLM', 'MAIL', 'MAILBOX', 'CHAT', 'DATABASE', 'SIGNATURE'] as const
export type CredentialUse = (typeof CREDENTIAL_USES)[number]
