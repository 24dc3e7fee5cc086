// OpenSSL, for the control link and connectivity checks. Jobs on one host never load it.
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>

#include "core/late/late_library.h"

namespace {

#define DTRUN_TEXT_OF(number) #number
#define DTRUN_FILE_OF(library, number) library ".so." DTRUN_TEXT_OF(number)

// The version must match the headers.
constinit dtrun::late::Library crypto(DTRUN_FILE_OF("libcrypto", OPENSSL_SHLIB_VERSION), "libssl3");
constinit dtrun::late::Library ssl(DTRUN_FILE_OF("libssl", OPENSSL_SHLIB_VERSION), "libssl3");

}  // namespace

extern "C" {

DTRUN_LATE(crypto, long, BIO_ctrl, (BIO * a, int b, long c, void* d), (a, b, c, d))
DTRUN_LATE(crypto, size_t, BIO_ctrl_pending, (BIO * a), (a))
DTRUN_LATE(crypto, int, BIO_free, (BIO * a), (a))
DTRUN_LATE(crypto, int, BIO_new_bio_pair, (BIO * *a, size_t b, BIO** c, size_t d), (a, b, c, d))
DTRUN_LATE(crypto, int, BIO_read, (BIO * a, void* b, int c), (a, b, c))
DTRUN_LATE(crypto, int, BIO_write, (BIO * a, const void* b, int c), (a, b, c))
DTRUN_LATE(crypto, int, CRYPTO_get_ex_new_index,
           (int a, long b, void* c, CRYPTO_EX_new* d, CRYPTO_EX_dup* e, CRYPTO_EX_free* f),
           (a, b, c, d, e, f))
DTRUN_LATE(crypto, int, CRYPTO_memcmp, (const void* a, const void* b, size_t c), (a, b, c))
DTRUN_LATE(crypto, void, ERR_clear_error, (), ())
DTRUN_LATE(crypto, unsigned long, ERR_get_error, (), ())
DTRUN_LATE(crypto, const char*, ERR_reason_error_string, (long unsigned a), (a))
DTRUN_LATE(crypto, int, EVP_DecodeBlock, (unsigned char* a, const unsigned char* b, int c), (a, b, c))
DTRUN_LATE(crypto, int, EVP_EncodeBlock, (unsigned char* a, const unsigned char* b, int c), (a, b, c))
DTRUN_LATE(crypto, int, EVP_DigestFinal_ex, (EVP_MD_CTX * a, unsigned char* b, unsigned int* c), (a, b, c))
DTRUN_LATE(crypto, int, EVP_DigestInit_ex, (EVP_MD_CTX * a, const EVP_MD* b, ENGINE* c), (a, b, c))
DTRUN_LATE(crypto, int, EVP_DigestUpdate, (EVP_MD_CTX * a, const void* b, size_t c), (a, b, c))
DTRUN_LATE(crypto, void, EVP_MD_CTX_free, (EVP_MD_CTX * a), (a))
DTRUN_LATE(crypto, EVP_MD_CTX*, EVP_MD_CTX_new, (), ())
DTRUN_LATE(crypto, int, EVP_MD_get_size, (const EVP_MD* a), (a))
DTRUN_LATE(crypto, const EVP_MD*, EVP_sha256, (), ())
DTRUN_LATE(crypto, unsigned char*, HMAC,
           (const EVP_MD* a, const void* b, int c, const unsigned char* d, size_t e, unsigned char* f,
            unsigned* g),
           (a, b, c, d, e, f, g))
DTRUN_LATE(crypto, int, RAND_bytes, (unsigned char* a, int b), (a, b))
DTRUN_LATE(crypto, unsigned char*, SHA256, (const unsigned char* a, size_t b, unsigned char* c), (a, b, c))

DTRUN_LATE(ssl, const SSL_CIPHER*, SSL_CIPHER_find, (SSL * a, const unsigned char* b), (a, b))
DTRUN_LATE(ssl, long, SSL_CTX_ctrl, (SSL_CTX * a, int b, long c, void* d), (a, b, c, d))
DTRUN_LATE(ssl, void, SSL_CTX_free, (SSL_CTX * a), (a))
DTRUN_LATE(ssl, void*, SSL_CTX_get_default_passwd_cb_userdata, (SSL_CTX * a), (a))
DTRUN_LATE(ssl, void*, SSL_CTX_get_ex_data, (const SSL_CTX* a, int b), (a, b))
DTRUN_LATE(ssl, SSL_CTX*, SSL_CTX_new, (const SSL_METHOD* a), (a))
DTRUN_LATE(ssl, int, SSL_CTX_set_ciphersuites, (SSL_CTX * a, const char* b), (a, b))
DTRUN_LATE(ssl, void, SSL_CTX_set_default_passwd_cb_userdata, (SSL_CTX * a, void* b), (a, b))
DTRUN_LATE(ssl, int, SSL_CTX_set_ex_data, (SSL_CTX * a, int b, void* c), (a, b, c))
DTRUN_LATE(ssl, int, SSL_CTX_set_num_tickets, (SSL_CTX * a, size_t b), (a, b))
DTRUN_LATE(ssl, uint64_t, SSL_CTX_set_options, (SSL_CTX * a, uint64_t b), (a, b))
DTRUN_LATE(ssl, void, SSL_CTX_set_psk_find_session_callback, (SSL_CTX * a, SSL_psk_find_session_cb_func b),
           (a, b))
DTRUN_LATE(ssl, void, SSL_CTX_set_psk_use_session_callback, (SSL_CTX * a, SSL_psk_use_session_cb_func b),
           (a, b))
DTRUN_LATE(ssl, int, SSL_CTX_set_session_id_context, (SSL_CTX * a, const unsigned char* b, unsigned c),
           (a, b, c))
DTRUN_LATE(ssl, void, SSL_CTX_set_verify, (SSL_CTX * a, int b, SSL_verify_cb c), (a, b, c))
DTRUN_LATE(ssl, void, SSL_SESSION_free, (SSL_SESSION * a), (a))
DTRUN_LATE(ssl, SSL_SESSION*, SSL_SESSION_new, (), ())
DTRUN_LATE(ssl, int, SSL_SESSION_set1_id_context, (SSL_SESSION * a, const unsigned char* b, unsigned c),
           (a, b, c))
DTRUN_LATE(ssl, int, SSL_SESSION_set1_master_key, (SSL_SESSION * a, const unsigned char* b, size_t c),
           (a, b, c))
DTRUN_LATE(ssl, int, SSL_SESSION_set_cipher, (SSL_SESSION * a, const SSL_CIPHER* b), (a, b))
DTRUN_LATE(ssl, int, SSL_SESSION_set_protocol_version, (SSL_SESSION * a, int b), (a, b))
DTRUN_LATE(ssl, int, SSL_accept, (SSL * a), (a))
DTRUN_LATE(ssl, int, SSL_connect, (SSL * a), (a))
DTRUN_LATE(ssl, long, SSL_ctrl, (SSL * a, int b, long c, void* d), (a, b, c, d))
DTRUN_LATE(ssl, void, SSL_free, (SSL * a), (a))
DTRUN_LATE(ssl, SSL_CTX*, SSL_get_SSL_CTX, (const SSL* a), (a))
DTRUN_LATE(ssl, int, SSL_get_error, (const SSL* a, int b), (a, b))
DTRUN_LATE(ssl, void*, SSL_get_ex_data, (const SSL* a, int b), (a, b))
DTRUN_LATE(ssl, int, SSL_get_shutdown, (const SSL* a), (a))
DTRUN_LATE(ssl, int, SSL_is_init_finished, (const SSL* a), (a))
DTRUN_LATE(ssl, int, SSL_key_update, (SSL * a, int b), (a, b))
DTRUN_LATE(ssl, SSL*, SSL_new, (SSL_CTX * a), (a))
DTRUN_LATE(ssl, int, SSL_read, (SSL * a, void* b, int c), (a, b, c))
DTRUN_LATE(ssl, int, SSL_session_reused, (const SSL* a), (a))
DTRUN_LATE(ssl, void, SSL_set_bio, (SSL * a, BIO* b, BIO* c), (a, b, c))
DTRUN_LATE(ssl, int, SSL_set_ex_data, (SSL * a, int b, void* c), (a, b, c))
DTRUN_LATE(ssl, int, SSL_write, (SSL * a, const void* b, int c), (a, b, c))
DTRUN_LATE(ssl, const SSL_METHOD*, TLS_client_method, (), ())
DTRUN_LATE(ssl, const SSL_METHOD*, TLS_method, (), ())
DTRUN_LATE(ssl, const SSL_METHOD*, TLS_server_method, (), ())

}  // extern "C"
